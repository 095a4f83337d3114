// Sphinx's search scores only titles and words. This shows the sections first that a field lists while the reader types
// (search-rank.js). It orders the other results by their kind, takes the right
// spelling of a misspelt word, and leaves the words out that every question has, "how do I". It runs after searchtools.js
// and before the index has loaded.
{
  const { COMMON, respelt } = subnormTerms;
  const EXERCISE = /^notebooks\/exercises/;
  const KINDS = [[/^notebooks\/\d\d-/, 8], [/^notebooks\/\d\d[a-z]-/, 6], [EXERCISE, -8], [/^book\/(exercises|changelog)/, -8]];
  const FIRST = 1000; // higher than any of Sphinx's scores
  const NEAR = 16; // points of a section that may have been meant, though it has not all words
  const LISTED = 8; // sections of a field
  const CODE = /\w[_.(]\w*/; // in a query that is the name of an object
  const FINISHED = "Search finished, found ${resultCount} page(s) matching the search query."; // Sphinx's, with no singular

  /** The query with its misspelt words replaced; a word is right if some text of the book has it. */
  function spelt(query) {
    const { terms, titleterms } = Search._index;
    return subnormRank.spelt(query, (word) => [word, new Stemmer().stemWord(word)].some((form) => Object.hasOwn(terms, form) || Object.hasOwn(titleterms, form))
      || Object.keys(terms).some((term) => term.includes(word)));
  }

  const MARKED = "sphinx_highlight_terms"; // where Sphinx finds the words to mark on a page
  const HYPHENED = /[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)+/gu; // "warm-up" is one word to quote and to mark
  const asked = {}; // the stems to quote, the same with hyphened words in parts, and the words to mark
  const parse = (query) => {
    const own = query.replace(/[\p{L}\p{N}_]+/gu, (word) => (COMMON.has(word.toLowerCase()) ? " " : word));
    return /[\p{L}\p{N}]/u.test(own) ? parseAll(own) : null;
  };
  const parseAll = Search._parseQuery;
  Search._parseQuery = (query) => {
    const meant = spelt(query);
    if (meant !== query) {
      const note = document.createElement("p");
      note.textContent = `No page has “${query}”: these results are for “${meant}”.`;
      Search.status.before(note);
    }
    const apart = meant.replace(/[\p{L}\p{N}_]+/gu, (word) => (respelt(word).includes("-") ? respelt(word) : word)); // "warmup"
    const parsed = parse(apart) ?? parseAll(meant);
    parsed[0] = meant;
    parsed[4] = (parse(meant) ?? parsed)[4]; // the names of objects, as typed
    const [, stems, , typed] = parsed;
    const name = respelt(meant).toLowerCase();
    const joined = [...new Set(name.match(HYPHENED))];
    const [, others, , left] = (joined.length ? parse(name.replace(HYPHENED, " ")) : parsed) ?? [, [], , []];
    asked.parts = [...stems];
    asked.words = [...joined.map((word) => word.replaceAll("-", "[\\s-]*")), ...others];
    asked.marked = joined.length ? [...joined, ...left] : [...typed];
    parsed[3] = new Set(asked.marked); // which Sphinx marks in the names of objects
    try { localStorage.removeItem(MARKED); } catch { /* no store */ }
    return parsed;
  };

  /** Which results have all words, from the start of a word or of a part of a name. Sphinx finds "eps" in "steps", too,
      and with "warm" and "up" each page that has "up": it counts only long words. */
  function complete(stems) {
    const { docnames, terms, titleterms } = Search._index;
    const has = (term, word) => (word.length > 2 ? term.startsWith(word) || term.includes(`_${word}`) : term === word);
    const each = [...stems].map(() => new Set());
    for (const index of [terms, titleterms])
      for (const term of Object.keys(index))
        [...stems].forEach((word, k) => { if (has(term, word)) [index[term]].flat().forEach((doc) => each[k].add(docnames[doc])); });
    const parts = (name) => name.split(/[._]|(?<=[a-z])(?=[A-Z])/).map((part) => part.toLowerCase());
    const begun = (name) => [...stems].some((word) => [...parts(name), name.split(".").at(-1).toLowerCase()].some((part) => part.startsWith(word)));
    return ([doc, title, anchor, kind]) => (kind ? begun(title) : anchor || each.every((some) => some.has(doc)));
  }

  /** The results with the term in the title of its entry of the glossary; the whole glossary is no result beside one. */
  function named(results) {
    const { docnames, indexentries } = Search._index;
    const terms = new Map(Object.entries(indexentries).flatMap(([entry, places]) => places.filter(([, , main]) => main)
      .map(([at, id]) => [`${docnames[at]}#${id}`, respelt(entry)])));
    const whole = new Set();
    for (const result of results) {
      const term = terms.get(result[0] + result[2]);
      if (!term) continue;
      whole.add(result[0]);
      result[1] += ` > ${term}`;
    }
    return results.filter(([doc, , anchor]) => anchor || !whole.has(doc));
  }

  const perform = Search._performSearch;
  Search._performSearch = (query, ...terms) => {
    const { docnames, titles, filenames } = Search._index;
    const ranked = CODE.test(query) && !/\s/.test(query) ? [] : subnormRank.found(query).filter(({ all }, k) => all || k < LISTED);
    const near = ranked[0]?.score >= NEAR; // else pages with all words in their text come first
    const found = new Map(ranked.map(({ page, title, all }, k) => { // {page#anchor: result}
      const [doc, id = ""] = page.replace(".html", "").split("#");
      const at = docnames.indexOf(doc), anchor = id && `#${id}`;
      const name = title === titles[at] || id.startsWith("term-") ? titles[at] : `${titles[at]} > ${title}`;
      return [doc + anchor, [doc, name, anchor, null, ((all || near) && (k < LISTED || !EXERCISE.test(doc)) ? FIRST : -FIRST / 2) - k / 10, filenames[at]]];
    }));
    const fits = complete(terms[0]);
    const others = perform(query, ...terms).filter((result) => !found.has(result[0] + result[2]) && fits(result));
    for (const result of others) {
      result[4] += KINDS.find(([kind]) => kind.test(result[0]))?.[1] ?? 0;
      if (result[3] && !CODE.test(query)) result[4] -= FIRST; // what says "Python function" has no sentence to quote
    }
    const all = named([...others, ...found.values()]).sort((a, b) => a[4] - b[4]); // Sphinx shows the last one first
    const full = ranked.filter((hit) => hit.all).length, more = all.length - ranked.length, some = full < ranked.length;
    const s = (count) => (count === 1 ? "" : "s");
    const counts = [ranked.length && `${ranked.length} section${s(ranked.length)}`,
      more && `${more}${ranked.length ? " other" : ""} page${s(more)}, term${s(more)} or function${s(more)}`].filter(Boolean).join(" and ");
    Documentation.TRANSLATIONS[FINISHED] = full + more ? `“${query}”: ${counts} ${all.length === 1 ? "has" : "have"} ${some ? "all or some of " : ""}these words.`
      : "No page has all these words. These have some of them.";
    return all;
  };

  // A quotation takes the page of its result. It comes when the result is in view, and each page comes once. No page
  // opened as a file can read another: there it takes the first sentences of the section that has most of the words.
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  const pagesRead = new Map(), quoted = new Set(); // the paragraphs, each once
  const seen = new IntersectionObserver((entries) => entries.filter(({ isIntersecting }) => isIntersecting).forEach(async ({ target }) => {
    seen.unobserve(target);
    const [address, anchor] = target.querySelector("a").href.split("#");
    if (location.protocol === "file:") {
      const found = firstSentences(address, anchor);
      target.classList.toggle("quoted", found.length > 0);
      target.append(...found);
    } else {
      if (!pagesRead.has(address)) pagesRead.set(address, fetch(address).then((answer) => answer.text()));
      const html = await pagesRead.get(address);
      target.append(Search.makeSearchSummary(html, asked.words, anchor && `#${decodeURIComponent(anchor)}`));
    }
    for (const word of asked.marked) _highlightText(target, word, "highlighted");
  }));
  /** The quotation without the page: the sentences with most of the words, or below the heading with them, or none. */
  function firstSentences(address, anchor) {
    const count = (text, wanted) => new Set(begins(text, wanted).map(([word]) => word)).size;
    const own = subnormRank.sections.filter(({ page, text }) => {
      const [file, id] = page.split("#");
      return text && address.endsWith(`/${file}`) && (!anchor || id === anchor);
    });
    for (const wanted of [asked.words, asked.parts]) {
      const common = ({ title, text }) => count(text, wanted) + count(title, wanted) / 100;
      const best = own.reduce((one, other) => (one && common(one) >= common(other) ? one : other), null);
      if (best && common(best)) return [quotation(count(best.text, wanted) ? best.text : `${best.title}: ${best.text}`)];
    }
    return [];
  }

  function quotation(text) {
    const summary = document.createElement("p");
    summary.className = "context";
    summary.textContent = text.replace(/…( …)+/g, "…");
    return summary;
  }

  const show = Search.query;
  Search.query = async (query) => {
    const prose = (result) => !result.querySelector(":scope > span"); // the span says what a function is
    new MutationObserver((changes) => {
      for (const result of changes.flatMap(({ addedNodes }) => [...addedNodes]).filter(prose)) {
        result.classList.add("quoted");
        seen.observe(result);
      }
    }).observe(Search.output, { childList: true });
    await subnormRanked();
    show(query);
  };

  // A result quotes only prose: no contents, objectives, code or answers.

  const NO_PROSE = `nav, script, style, details:not(:is(.second-reading, .question) > details), figure, pre, .cell, .admonition, .quick-check, .checks-head, .supports,
    .place, .chapter-of, .promise, .marks, sup.claim, .headerlink`;
  const LONG = 240; // characters

  const ACCENTS = { "^": "\u0302", "ˉ": "\u0304", "~": "\u0303" }; // x̂, x̄, x̃
  const IN_ONE_LINE = {
    annotation: () => "", mtable: () => "…",
    mfrac: (above, below) => `${above}/${below}\u2009`,
    msqrt: (...parts) => `√${grouped(parts.join(""))}`,
    msub: (base, index) => `${base}_${index}`, munder: (base, index) => (/[\p{L}\p{N}]/u.test(base) ? base : `${base}_${index}\u2009`),
    msup: (base, power) => (/^′+$/.test(power) ? base + power : `${base}^${power}`), mover: (base, accent) => base + (ACCENTS[accent] ?? ""),
    msubsup: (base, index, power) => `${base}_${index}^${power}`, munderover: (base, from, to) => `${base}_${from}^${to}\u2009`,
  };
  const grouped = (part) => (/^(.|[\d.]+|\p{L}\p{M}*|\p{L}{3,})$/u.test(part) ? part : `(${part})`);
  /** A formula in one line: x/√d, x_l^2. */
  function inOneLine(node) {
    const parts = [...node.children].map(inOneLine);
    const form = IN_ONE_LINE[node.localName];
    if (form) return form(...(node.localName === "msqrt" ? parts : parts.map(grouped)));
    return parts.length ? parts.join("") : node.textContent.replace("\u2061", ""); // "apply the function", which nobody sees
  }
  /** A page to quote from. KaTeX has each formula twice: here it has it once. */
  function read(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const formula of page.querySelectorAll(".katex")) formula.textContent = inOneLine(formula.querySelector("math"));
    return page;
  }

  Search.makeSearchSummary = (html, keywords, anchor) => {
    const page = read(html);
    page.querySelectorAll(NO_PROSE).forEach((part) => part.remove());
    const at = anchor ? page.getElementById(anchor.slice(1)) : null;
    const part = (at?.matches("dt") ? at.nextElementSibling : at) ?? page.querySelector("article");
    const texts = [part, ...part.querySelectorAll("p, li, dd")].filter((e) => e.matches("p, li, dd") && !e.querySelector("p"))
      .map((e) => e.textContent.trim().replace(/\s+/g, " ")).filter((text) => !quoted.has(text));
    if (at?.matches("dt") && texts.length) texts[0] = `${at.firstChild.textContent.trim()}: ${texts[0]}`; // a term
    const wanted = richest(texts, [...keywords], LONG) ? [...keywords] : asked.parts;
    const whole = richest(texts, wanted, LONG) ?? elsewhere(html, anchor, [[...keywords], asked.parts]);
    if (!whole) return quotation(excerpt(texts[0] ?? "", 0, LONG));
    const one = whole.words.length < wanted.length && richest(texts, wanted, LONG / 2);
    const other = one && richest(texts, wanted.filter((word) => !one.words.includes(word)), LONG / 2);
    const two = other && one.words.length + other.words.length > whole.words.length;
    for (const { text } of two ? [one, other] : [whole]) quoted.add(text);
    return quotation(two ? `${one.quote} … ${other.quote}` : whole.quote);
  };

  /** The line of a table, of code or of output with most of the words, where no prose has one, as the result of `richest`;
      of the words in parts only if no line has them whole. */
  function elsewhere(html, anchor, forms) {
    const page = read(html);
    const part = (anchor && page.getElementById(anchor.slice(1))?.closest("dl, section")) || page.querySelector("article");
    page.querySelectorAll(".supports, .checks-head, .place").forEach((line) => line.remove());
    const lines = (e) => (e.localName === "pre" ? e.textContent.split("\n").map((line) => line.trim()).filter((line) => !quoted.has(line) && !/^(from \S+ )?import /.test(line))
      : [e.textContent.trim().replace(/\s+/g, " ")]);
    const kinds = ["td, li, p, figcaption, summary, dt", "pre"].map((kind) => [...part.querySelectorAll(kind)].flatMap(lines));
    for (const wanted of forms) for (const start of [START, ""]) for (const texts of kinds) {
      const best = richest(texts, wanted, LONG, 0, start);
      if (best) {
        quoted.add(best.text);
        return best;
      }
    }
    return null;
  }

  const START = "(?<![\\p{L}\\p{N}_])";
  /** Where the words begin in a text: [word, place] of each. They are patterns; a single letter is a whole word. */
  const begins = (text, wanted, start = START) => wanted.flatMap((word) =>
    [...text.toLowerCase().matchAll(new RegExp(start + word + (word.length > 1 ? "" : "(?![\\p{L}\\p{N}_])"), "gu"))].map(({ index }) => [word, index]));

  /** The excerpt with most of the words, {text, quote, words}; the first of equals, and none if no text has any. */
  function richest(texts, wanted, long, least = 40, start = START) {
    let best = null;
    for (const text of texts.filter((text) => text.length > least))
      for (const [, place] of begins(text, wanted, start)) {
        const quote = excerpt(text, place, long);
        const words = [...new Set(begins(quote, wanted, start).map(([word]) => word))];
        if (words.length > (best?.words.length ?? 0)) best = { text, quote, words };
      }
    return best;
  }

  /** An excerpt in whole words, from the start of the sentence at `place`, or in a long one of the clause, or from a little before. */
  function excerpt(text, place, long) {
    const after = (...ends) => Math.max(...ends.map((end) => text.lastIndexOf(end, place) + 1));
    const starts = [place < long / 2 ? 0 : after(". ", "? ", "! "), after("; ", ": ")];
    const start = starts.find((at) => place - at <= long / 2) ?? text.lastIndexOf(" ", place - long / 4) + 1;
    const end = start + long < text.length ? text.lastIndexOf(" ", start + long) : text.length;
    return `${start ? "… " : ""}${text.slice(start, end).trim()}${end < text.length ? " …" : ""}`;
  }

  Documentation.addTranslations({
    messages: {
      "Search Results": "Results",
      "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.":
        "No page has all these words. Try fewer.",
    },
    plural_expr: "n != 1",
  });

  // Highlight the search words only on a page opened from the results: a middle click opens one, too.
  for (const sign of ["click", "auxclick"]) addEventListener(sign, ({ target }) => {
    if (target.closest("#search-results a")) try { localStorage.setItem(MARKED, [...asked.marked].join(" ")); } catch { /* no store */ }
  });
}
