# SPDX-License-Identifier: BSD-3-Clause
"""The workflow publishes the guide for every release of PyTorch, each in the folder to which the others link."""

import yaml

import noxfile
from tools import torch_release
from tools.packages import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text("utf-8"))
JOBS = WORKFLOW["jobs"]


def commands(job):
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def inputs(job, action):
    """What a step of a job gives to an action."""
    (given,) = [step["with"] for step in JOBS[job]["steps"] if step.get("uses", "").startswith(f"actions/{action}@")]
    return given


def test_the_guide_of_each_release_is_built_from_its_declarations_into_its_folder():
    assert JOBS["build"]["strategy"]["matrix"]["release"] == "${{ fromJSON(needs.releases.outputs.releases) }}"
    assert JOBS["releases"]["outputs"]["releases"] == "${{ steps.list.outputs.every_release }}"
    assert commands("build")[-2:] == ['python -m tools.torch_release "$RELEASE"', "python -m nox -s site"]
    assert inputs("build", "upload-artifact") | {"path": "build/site", "name": "${{ matrix.release }}"} == inputs(
        "build", "upload-artifact"
    )
    # Without a name and without `merge-multiple` every artifact gets a folder of its name.
    assert inputs("publish", "download-artifact") == {"path": "site"}
    assert inputs("publish", "upload-pages-artifact") == {"path": "site"}


def test_the_address_of_the_site_leads_to_the_release_of_the_checkout():
    assert 'echo "release=$(python -m tools.torch_release)" >> "$GITHUB_OUTPUT"' in commands("releases")
    (first_page,) = commands("publish")
    assert first_page.endswith("> site/index.html")
    assert "url=$CURRENT/" in first_page


def test_published_pages_link_to_the_other_releases_and_to_the_repository_that_publishes_them(monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    # How busy the machine is decides what a timeline shows, and not whether a guide is published.
    releases = ["-D", "timeline_unshown=draw", "-A", f"releases={','.join(torch_release.SUPPORTED)}"]
    assert noxfile.published() == releases
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://forge.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/theirs")
    theirs, here = "https://forge.example/someone/theirs", "docs/{filename}"
    assert noxfile.published() == [
        *(*releases, "-A", f"repository={theirs}"),
        *("-D", f"html_theme_options.source_view_link={theirs}/blob/main/{here}?plain=1"),
        *("-D", f"html_theme_options.source_edit_link={theirs}/edit/main/{here}"),
    ]


def test_another_job_checks_what_pages_say_of_their_timelines(monkeypatch):
    built = []
    monkeypatch.setattr(noxfile, "build_guide", lambda _, *options: built.append(options))
    noxfile.timelines.func(None)
    assert built == [()]
    assert "timelines" in noxfile.SLOW


def test_only_the_job_that_publishes_can_prove_who_it_is():
    allowed = {name: str(job.get("permissions")) for name, job in JOBS.items()}
    assert [name for name, permissions in allowed.items() if "write" in permissions] == ["publish"]
    assert set(JOBS["publish"]["needs"]) == {"releases", "build"}
    assert WORKFLOW["permissions"] == {"contents": "read"}
