// Ranks the sections of the book by the words in a search field, for the list below the field (search-box.js) and for the page
// of results (search.js). search-terms.js and the list of all sections (sections.js) come first.
const subnormRank = (() => {
  const { EXPLAINED, MODELS, OF_A_MODEL, words, stems, telling } = subnormTerms;
  const KINDS = [[/^notebooks\/\d\d-/, 3], [/^notebooks\/\d\d[a-z]-/, 2], [/\/exercises\//, -20],
    [/^book\/questions/, 4], [/^book\/glossary/, 1]]; // a question before a heading that is worded as it, a term before one
  const CODE = /\w[_.(]\w*/; // in a query that is the name of an object
  const SYMPTOMS = "notebooks/09d-when-something-breaks", ONE_SUBJECT = /^notebooks\/(?!09[ad])\d/, OBJECTS = "book/api/";
  const ALIKE = 0.75; // share of the words of a message that must agree
  // points for the words, for a title of them alone, for having all, for terms of them alone, for a heading that is worded as
  // the query or begins so, for a page as a whole, for one that explains the query, and for the entry of a pasted message
  const [FITS, SHORT, ALL, WHOLE, WORDED, BEGUN, PAGE, EXPLAINS, MESSAGE] = [20, 8, 6, 20, 15, 3, 3, 12, 100];
  const NEAR = 0.4, LEAST = 5; // the share of the best that is near; half of it is, where fewer are

  /** How well a text has one of the words: in full, or as the beginning of a word. Two letters count as a beginning only if
      nothing else is typed. */
  const BEGINS = 0.8;
  const has = (own, word, asked) => (own.includes(word) ? 1 : (asked.length === 1 || word.length > 2) && own.some((other) => other.startsWith(word)) ? BEGINS : 0);

  /** How well a section has it: in its title, its text or around it. A term that it explains counts by the share of its words
      that are asked for. */
  const WEIGHTS = [1, 0.5, 0.4], TERM = 0.95, BELOW = 0.3;
  const fit = ({ parts, explains }, word, asked) => Math.max(...parts.map((own, k) => WEIGHTS[k] * has(own, word, asked)),
    ...explains.map((term) => (has(term, word, asked) * TERM * asked.filter((one) => has(term, one, asked)).length) / term.length));

  /** How alike two lists are: the share of what they have in common. */
  const alike = (one, other) => (2 * one.filter((word) => other.includes(word)).length) / (one.length + other.length || 1);
  /** A text as it was typed, with each word and each pair of neighbours, as one list; and with one name for its spellings. */
  const pairs = (list) => [...list, ...list.slice(1).map((word, k) => `${list[k]} ${word}`)];
  const forms = (text) => [words(text), stems(text)].map(pairs);
  /** Which of the words are in one of the terms that the typed words have in full. */
  const within = (asked, terms) => new Set(terms.filter((term) => term && ` ${asked} `.includes(` ${term} `)).flatMap((term) => term.split(" ")));

  const terms = (text) => text.split(/,\s*/).map((term) => stems(term).join(" "));
  // The table of models has each of its models and columns, and a number such as 3 or V3 is part of a name.
  const TABLE = "book/models.html", models = terms(MODELS), ofModel = new Set(terms(OF_A_MODEL).flatMap((term) => term.split(" ")));

  /** The stems of a message that tell it from others. Numbers and shapes are the reader's own. */
  const own = (text) => new Set(telling(stems(text)).filter((word) => !/^\d+$/.test(word)));
  /** How many stems a heading of symptoms has in common with a message, which may be pasted in part, or with more around it. */
  const quoted = ({ messages }, message) => Math.max(0, ...messages.map((its) => {
    const common = [...message].filter((word) => its.has(word)).length;
    return common > 3 && common >= ALIKE * Math.min(its.size, message.size) ? common : 0;
  }));

  /** What is made of a section once: the stems of its parts, and of each term; the forms of its heading, and its messages. */
  function prepared({ page, title, also, text, at, of, below }) {
    const split = (one) => stems(one.includes("_") ? `${one} ${one.replaceAll("_", " ")}` : one);
    const named = also ? terms(also) : [];
    return {
      parts: [title, text, `${at} ${of}`].map(split),
      chapter: split(below),
      explains: named.map((term) => term.split(" ")),
      terms: [stems(title).join(" "), ...named],
      forms: [title, ...also.split(",")].map(forms),
      messages: page.startsWith(SYMPTOMS) ? title.split(" / ").map(own) : [],
    };
  }

  /** The sections that have the words, or most of them, the best first. A word that few sections have tells more, a heading
      that is worded as the query is counts, and so does a page that explains a term in it. */
  function found(query) {
    const among = CODE.test(query) ? sections : prose, asked = subnormTerms.wanted(query), typed = stems(query).join(" "), typedForms = forms(query);
    const said = within(typed, models).size ? asked.filter((word) => ofModel.has(word) || models.includes(word) || /^[a-z]?\d+[a-z]?$/.test(word)) : [];
    const fits = among.map((section) => {
      if (!section.parts) Object.assign(section, prepared(section));
      return asked.map((word) => (section.page === TABLE && said.includes(word) ? 1 : fit(section, word, asked)));
    });
    // A chapter has the words of its sections, if none of them has all.
    const full = new Set(among.filter((_, j) => fits[j].every(Boolean)).map(({ at }) => at));
    among.forEach(({ at, chapter }, j) => {
      if (!full.has(at)) fits[j] = fits[j].map((fit, k) => Math.max(fit, BELOW * has(chapter, asked[k], asked)));
    });
    const rare = asked.map((_, k) => Math.log(1 + among.length / (1 + fits.filter((fit) => fit[k]).length)));
    const total = rare.reduce((sum, weight) => sum + weight, 0);
    const message = own(query);
    const scored = among.map((section, j) => {
      const all = fits[j].every(Boolean), page = !section.page.includes("#");
      const share = fits[j].reduce((sum, fit, k) => sum + fit * rare[k], 0) / total;
      if (!share) return { ...section, all, share, score: 0 };
      const [title] = section.parts, own = telling(title);
      const short = own.filter((word) => asked.some((other) => word.startsWith(other))).length / (own.length || 1);
      const named = within(typed, section.terms);
      const whole = asked.filter((word) => named.has(word)).length / asked.length;
      const worded = Math.max(...section.forms.map((its) => typedForms.reduce((sum, form, k) => sum + alike(form, its[k]), 0) / 2));
      const kind = KINDS.find(([kind]) => kind.test(section.page))?.[1] ?? 0;
      const common = quoted(section, message);
      const score = FITS * share + SHORT * short * share + (all ? ALL : 0) + WHOLE * whole ** 2 + WORDED * worded * share
        + (title.join(" ").startsWith(typed) ? BEGUN : 0) + kind + (page ? PAGE : 0) + (whole === 1 && section.also ? EXPLAINS : 0) + (common && MESSAGE + common);
      return { ...section, all, share, score };
    });
    const best = Math.max(...scored.map(({ page, share }) => (page === TABLE ? 0 : share)));
    return scored.filter(({ share }) => share).sort((a, b) => b.score - a.score)
      .filter(({ all, share }, k) => all || share >= NEAR * best || (k < LEAST && 2 * share >= NEAR * best));
  }

  /** The text in the spelling of the sections, but for the words that are right elsewhere. */
  function spelt(text, right = () => false) {
    return subnormTerms.spelt(text, sections.map(({ title, text, also }) => `${title} ${text} ${also}`), right);
  }

  /** Each section of the book: {page, at, of, title, text, also}, `at` the title of its page, `of` that of the section it is
      in, and `also` the terms it explains. */
  const sections = SECTIONS.flatMap(([page, at, rows]) => {
    let above = "";
    return rows.map(([anchor, title, text, below]) => {
      if (!below) above = title;
      const id = anchor && `#${anchor}`;
      return { page: `${page}.html${id}`, at, of: below ? above : "", title, text, also: EXPLAINED[page + id] ?? "",
        below: !anchor && ONE_SUBJECT.test(page) ? rows.map((row) => `${row[1]} ${row[2]}`).join(" ") : "" };
    });
  });

  const prose = sections.filter(({ page }) => !page.startsWith(OBJECTS));

  return { sections, found, spelt };
})();
