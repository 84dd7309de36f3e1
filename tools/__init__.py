# SPDX-License-Identifier: BSD-3-Clause
"""What noxfile.py is made of. Nothing here is part of a package."""
