// Which entries of "When something breaks" have a pasted message: row-filter.js asks `subnormNearest(rows)(text)`.
//
// A message is compared word by word, in order, with those that an entry quotes: in its heading, in its text, and in the
// output of its first cell. Numbers, shapes, paths and the modules of a parameter are the reader's own. A name weighs more than a word, and a word
// that tells entries apart more than one that several have. An entry is found if most of the weight of its message is in
// the text, or if the text is a part of its message and has a word that no other entry has. Otherwise there is no answer:
// a wrong one costs the reader more. tests/helpers/messages.py has what this was tried on. For plain words that no entry
// has all of, `subnormSome` finds entries to look at.
{
  const ENTRY = 0.78, PART = 0.9; // the share of its weight that has to be there
  const LEAST = 2.2; // the weight that a part needs
  const BESIDE = 0.95; // of the weight of the best entry, to be shown beside it
  const SOME = 0.75; // of the score of the best entry, for plain words that no entry has all of
  const GAP = 0.1; // what a word between two costs, in the text
  const MINOR = new Set(`a all an and are as at be but by can cannot do does for from get got had has have in instead is
    it its module more must no not object of on or should so than that the this to was with will you your`.split(/\s+/));
  const MAJOR = new Set(["missing", "unexpected"]); // messages that differ in nothing else ask for other fixes
  const TYPES = /^(Half|Float|Double|BFloat16|Long|Int|Short|Byte|Char|Bool|Complex\w+|(float|int|uint|bfloat|complex)\d+)$/;
  const KIND = /^(\w*(Error|Exception|Warning)|Traceback)$/;
  const WORD = /[\p{L}_][\p{L}\p{N}_]*/gu;

  const PATHS = /(?:[\w.~-]*\/)+[\w.-]+|\bc10::/g, MODULES = /(?:\w+\.)+(?=(?:weight|bias|gamma|beta|running_\w+)\b)/g;

  const NORM = /(\w+\.)*(\w*norm\w*|ln_?\w?)\.(?=bias\b)/gi; // a norm without a bias is another norm, a layer without one is not

  /** The words of a text without them, in order: {word, weight, type}. */
  const parse = (whole, text = whole.replace(PATHS, " ").replace(NORM, "of_norm ").replace(MODULES, "")) => [...text.matchAll(WORD)].flatMap(({ 0: word, index }) => {
    if (KIND.test(word)) return [];
    const type = TYPES.test(word);
    const quoted = /['"`]/.test(text[index - 1] ?? "") && /['"`]/.test(text[index + word.length] ?? "");
    const name = !type && (quoted || /_|\p{Ll}\p{Lu}|\p{L}\p{N}|\p{Lu}{2}/u.test(word)) && !/^__\w+__$/.test(word);
    const lower = word.toLowerCase();
    return [{ word: lower, type, weight: name || MAJOR.has(lower) ? 2 : MINOR.has(lower) ? 0.2 : 1 }];
  });
  const sum = (words) => words.reduce((all, { weight }) => all + weight, 0);

  /** The most weight of a message that is in the text, in order and close together (a local alignment). */
  const shared = (message, text) => {
    let best = 0, above = new Float64Array(text.length + 1);
    for (const { word, weight, type } of message) {
      const row = new Float64Array(text.length + 1);
      for (let k = 1; k <= text.length; k++) {
        const same = text[k - 1].word === word ? weight : type && text[k - 1].type ? 0.7 * weight : -1;
        row[k] = Math.max(0, above[k], row[k - 1] - GAP, same > 0 ? above[k - 1] + same : 0);
        if (row[k] > best) best = row[k];
      }
      above = row;
    }
    return best;
  };

  // What readers write around the trouble itself, beside the words of any question.
  const TOLD = "again become became becomes before here just keep keeps model out output outputs since start started step steps still these those".split(" ");

  /** The heading of a row without the messages it quotes. */
  const wording = (row) => [...row.querySelector("h3").childNodes].filter((part) => part.localName !== "code").map((part) => part.textContent).join(" ");
  /** The rows, of {row, text}, that have enough of the typed words, and which. A word of a heading counts twice. */
  globalThis.subnormSome = (typed, rows) => {
    const parts = (text) => subnormTerms.respelt(text).toLowerCase().match(/[\p{L}_][\p{L}\p{N}_]+/gu) ?? [];
    const around = new Set([...MINOR, ...TOLD, ...subnormTerms.COMMON]);
    const asked = [...new Set(parts(typed))].filter((word) => !around.has(word));
    // A short word is the start of many others: "out" of "output", "norm" of "normalized_shape".
    const same = (word, other) => (word.length > 4 ? other.startsWith(word.replace(/s$/, "")) : other === word || other === `${word}s`);
    const has = (words, word) => words.some((other) => same(word, other));
    const texts = rows.map(({ row, text }) => [text, wording(row)].map(parts));
    const weight = new Map(asked.map((word) => { // a word that few rows have tells more
      const having = texts.filter(([all]) => has(all, word)).length;
      return [word, Math.log(1 + rows.length / Math.max(having, 1))];
    }));
    const heavy = (words) => words.reduce((all, word) => all + weight.get(word), 0);
    const scored = rows.map((one, k) => {
      const [all, heading] = texts[k];
      const words = asked.filter((word) => has(all, word));
      const titled = words.filter((word) => has(heading, word));
      const enough = 2 * words.length > asked.length || (titled.length && 2 * words.length === asked.length);
      return { one, words, titled: titled.length > 0, score: enough ? heavy(words) + heavy(titled) : 0 };
    }).filter(({ score }) => score > 0);
    const best = Math.max(...scored.map(({ score }) => score));
    const shown = scored.filter(({ score, titled }) => score >= SOME * best && (titled || !scored.some((other) => other.titled)));
    const among = asked.filter((word) => shown.some(({ words }) => words.includes(word)));
    const each = shown.every(({ words }) => words.length === among.length);
    return {
      rows: shown.map(({ one }) => one),
      words: (each ? "" : "some of ") + among.map((word) => `“${word}”`).join(each ? " and " : ", "),
    };
  };

  globalThis.subnormNearest = (rows) => {
    const entries = rows.map((row) => {
      const texts = (selector) => [...row.querySelectorAll(`:scope > ${selector}`)].map((one) => parse(one.textContent));
      const [codes, [heading]] = [texts("h3 code"), texts("h3")];
      const quoted = texts("details p code").filter((words) => words.length > 3 && sum(words) >= 3); // else it is code
      const messages = [...(codes.length ? codes : [heading]), ...quoted];
      return { messages, printed: parse(row.querySelector(".cell_output")?.textContent ?? "") };
    });
    const having = new Map(); // how many entries have a word
    for (const { messages, printed } of entries)
      for (const word of new Set([...messages.flat(), ...printed].map(({ word }) => word)))
        having.set(word, (having.get(word) ?? 0) + 1);
    const common = (word) => [1, 1, 0.7][having.get(word) ?? 0] ?? 0.5;
    const weigh = (words) => words.map((one) => (one.weight > 1 ? one : { ...one, weight: one.weight * common(one.word) }));
    for (const entry of entries) {
      entry.messages = entry.messages.map(weigh);
      entry.printed = weigh(entry.printed);
      entry.own = new Set([...entry.messages.flat(), ...entry.printed]
        .filter(({ word, weight }) => having.get(word) === 1 && weight >= 1).map(({ word }) => word));
    }

    /** For each row: how well it has the message, or 0. */
    return (pasted) => {
      const text = weigh(parse(pasted));
      const whole = sum(text);
      const found = entries.map(({ messages, printed, own }) => {
        const scores = messages.map((message) => {
          const both = shared(message, text);
          return both >= ENTRY * sum(message) ? both : 0;
        });
        const part = Math.max(...[...messages, printed].map((message) => shared(message, text)));
        const told = part >= PART * whole && part >= LEAST && text.some(({ word }) => own.has(word));
        return Math.max(...scores, told ? part : 0);
      });
      const best = Math.max(...found);
      return found.map((score) => (score >= BESIDE * best ? score : 0));
    };
  };
}
