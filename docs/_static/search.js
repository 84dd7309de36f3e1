/* Finds the page of a message that a reader pastes, although no page has the numbers and names of the reader's program.

Sphinx lists the pages that have all words of a query. Where there is none, or the query is as long as a message, this
lists the pages that have the most of its words. A word counts the more, the fewer pages have it.

Sphinx also lists each parameter of a C function above the pages, which is 26 lines for "stream". This leaves them out.
*/
"use strict";

const pagesWithAllWords = Search.performTermsSearch;
const LENGTH_OF_A_MESSAGE = 6;
const MOST_PAGES = 10;

Search.performTermsSearch = (words, excluded) => {
  const all = pagesWithAllWords(words, excluded);
  if (all.length && words.size < LENGTH_OF_A_MESSAGE) return all;
  const pages = new Map();
  for (const word of words) {
    const found = pagesWithAllWords(new Set([word]), excluded);
    const weight = Math.log(Search._index.docnames.length / found.length);
    for (const [name, title, anchor, description, , ...rest] of found) {
      const score = (pages.get(name)?.[4] ?? 0) + weight;
      pages.set(name, [name, title, anchor, description, score, ...rest]);
    }
  }
  return [...pages.values()].sort((one, other) => other[4] - one[4]).slice(0, MOST_PAGES);
};

const allObjects = Search.performObjectSearch;

Search.performObjectSearch = (word, others) =>
  allObjects(word, others).filter(([, , , description]) => !description.startsWith("C function parameter"));
