// Use the browser's storage; null if it refuses. The scripts loaded after this one need it too.
const subnormStore = (use) => { try { return use(localStorage); } catch { return null; } };

// A formula, listing or table that is wider than its column scrolls, and then needs keyboard access.
{
  const BOXES = ".eqn, pre, .cell_output > .output, .pst-scrollable-table-container, .sd-card-text";
  // Read widths after the browser has laid out that part of the page, and all of them before marking any. Observe the
  // contents of a box too: fonts load late, and change its width.
  const observer = new ResizeObserver((entries) => {
    const sized = entries.flatMap(({ target }) => [target, target.parentElement]);
    const boxes = [...new Set(sized)].filter((box) => box.matches(BOXES));
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth);
    boxes.forEach((box, k) => {
      for (const [name, value] of Object.entries({ tabindex: 0, role: "group", "aria-label": "scrolls sideways" }))
        if (wide[k]) box.setAttribute(name, value);
        else box.removeAttribute(name);
    });
  });
  const watch = (part) => part.querySelectorAll(BOXES).forEach((box) => {
    observer.observe(box);
    if (box.firstElementChild) observer.observe(box.firstElementChild);
  });
  watch(document);
  document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => { if (!skipped) watch(target) });
}

// On the first interaction lay out the whole page, so that nothing shifts while it is read, and jumps land right.
// The theme scrolls its sidebar: without capture, only scrolling of the page itself reaches the window.
for (const [sign, capture] of [["scroll", false], ["pointerdown", true], ["keydown", true], ["click", true]])
  addEventListener(sign, () => document.documentElement.classList.remove("fresh"), { once: true, capture });

// Show where the page is in the list of the sidebar. Pictures below the first wait for the page (slim.py): then all come
// that paper shows, because Chromium prints none that still waits.
addEventListener("load", () => {
  const list = document.querySelector(".sidebar-primary-item:has(> nav)");
  const here = [...(list?.querySelectorAll("li.active > a") ?? [])].at(-1);
  if (here?.checkVisibility()) list.scrollTop += here.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
  for (const picture of document.querySelectorAll("img[loading]:not(details:not([open]) *)")) picture.loading = "eager";
});

// Escape takes away the marks of a search. Sphinx does that with its shortcuts, which are off: one of them is "/".
addEventListener("keydown", ({ key }) => { if (key === "Escape" && typeof SphinxHighlight !== "undefined") SphinxHighlight.hideSearchWords(); });

// In a Predict box or quick check an arrow key only moves to the next option; Enter, Space or a click chooses it.
addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (!target.matches?.(".predict input[type=radio], .quick-check input") || event.ctrlKey || event.altKey || event.metaKey) return;
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
  if (key !== "Enter" && !step) return;
  event.preventDefault();
  if (key === "Enter") return target.click();
  const options = [...target.closest(".predict, .quick-check").querySelectorAll("input[type=radio]")];
  options.at((options.indexOf(target) + step) % options.length).focus();
});

// Highlight the current section, and those around it, in the page contents where they are beside the text: the last
// section that has begun above the middle of the screen.
if (matchMedia("(min-width: 1200px)").matches) {
  const links = new Map([...document.querySelectorAll(".page-toc a[href^='#']")]
    .map((link) => [document.getElementById(decodeURIComponent(link.hash.slice(1))), link]));
  const seen = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
    const current = [...links.keys()].findLast((section) => seen.has(section));
    if (current) for (const [section, link] of links) link.classList.toggle("active", section.contains(current));
  }, { rootMargin: "0px 0px -60%" });
  for (const section of links.keys()) if (section) observer.observe(section);
}

// The menu in the head of a page: by pointer, with the arrow keys, and closed with Escape.
for (const button of document.querySelectorAll(".dropdown-toggle")) {
  const menu = button.nextElementSibling;
  const show = (open) => {
    menu.classList.toggle("show", open);
    button.setAttribute("aria-expanded", open);
  };
  addEventListener("click", ({ target }) => show(button.contains(target) && !menu.classList.contains("show")));
  button.parentElement.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") button.focus();
    if (step || event.key === "Escape") show(Boolean(step));
    if (!step) return;
    event.preventDefault();
    const items = [button, ...menu.querySelectorAll(".dropdown-item")];
    items.at((items.indexOf(document.activeElement) + step) % items.length).focus();
  });
}

// The first use of a search field loads what shows sections while the reader types.
{
  const { src } = document.currentScript;
  document.addEventListener("focusin", ({ target }) => {
    if (!target.matches(".bd-search input") || document.querySelector("script[src*='search-box.js']")) return;
    document.head.append(Object.assign(document.createElement("script"), { src: src.replace(/subnorm\.js.*/, "search-box.js") }));
  });
}

// "Back to top" appears when the reader scrolls up.
{
  const up = document.getElementById("pst-back-to-top");
  let before = 0;
  up?.addEventListener("click", () => scrollTo(0, 0));
  if (up) addEventListener("scroll", () => {
    up.style.display = scrollY < before && scrollY > innerHeight ? "block" : "none";
    before = scrollY;
  });
}

// Print in the light theme, whatever the screen shows, with the page's title at the foot of each sheet, with each picture
// in one box with its text, and last the hints and the answers: curves to draw, those of the quick checks, and the
// solutions. All go back to their places afterwards.
{
  const page = document.documentElement;
  let shown, moved = [], printing = false;

  // Move a node, and remember where it was.
  const move = (node, into) => {
    const place = document.createComment("");
    node.replaceWith(place);
    into.append(node);
    moved.unshift([place, node]); // the last one goes back first
  };
  const made = (tag, className, ...nodes) => {
    const element = Object.assign(document.createElement(tag), { className });
    element.append(...nodes);
    return element;
  };
  const copies = (element) => {
    const copy = element.cloneNode(true);
    for (const named of copy.querySelectorAll("[id]")) named.removeAttribute("id");
    return copy.childNodes;
  };
  // A question again, so that nobody has to turn back for it, and its answer.
  const answer = (check) => {
    const why = check.querySelector(".why.right").cloneNode(true);
    why.querySelector("strong").replaceWith(made("strong", "", ...copies(check.querySelector(".option:has(.right) label"))));
    return made("div", "", made("p", "asked", ...copies(check.querySelector("legend"))), why);
  };
  // The measured curve of a sketch, whose blank axes stay in the text.
  const drawn = (curve) => {
    const question = curve.closest(".cell").previousElementSibling.querySelector("p:not([class])");
    return made("div", "", made("p", "asked", ...copies(question)), made("figure", "live", made("div", "live-states", curve)));
  };
  // The place of a task's hints or answers: an item of a chapter's exercises, or a section of a sheet.
  const placeFor = (task, title) => {
    const item = task.matches("li") ? [...task.parentElement.children].indexOf(task) + 1 : 0;
    if (item && title === "answers") return made("div", "", made("p", "asked", `${item}. `, ...copies(task.querySelector("p"))));
    return made("div", "", made("p", "rubric", ...(item ? [`Exercise ${item}`] : copies(task.querySelector("h1, h2, h3, h4")))));
  };
  // What the printed text cites, as the cards of its links describe it (hover-cards.js).
  const sources = () => {
    const links = document.querySelectorAll('a[data-card][href*="references.html#"]:not(html:not(.print-all) details:not([open]) *)');
    return [...new Set([...links].map((link) => link.dataset.card))].map((source) => made("p", "", source));
  };
  const BOXES = {
    "printed-references": [],
    "printed-hints": [...document.querySelectorAll(".bd-article :is(details.dropdown, details.sd-dropdown)")]
      .filter((box) => box.querySelector("summary").textContent.trim() === "Hint"),
    // in a sheet all that follows a solution is about it
    "printed-answers": document.querySelectorAll(".bd-article .solution, .in-page-head ~ section > .solution ~ :not(.tag_check)"),
  };
  const answersLast = () => {
    const checks = [...document.querySelectorAll(".quick-check")].map(answer);
    const curves = [...document.querySelectorAll("[data-live='sketch'] .live-states > :last-child")].map(drawn); // of live.js, which comes first
    for (const [name, boxes] of Object.entries(BOXES)) {
      const title = name.slice(8), part = made("section", name, made("h2", "", title));
      if (title === "references") part.append(...sources());
      if (title === "answers" && curves.length) part.append(made("h3", "", "Predictions"), ...curves);
      if (title === "answers" && checks.length) part.append(made("h3", "", "Quick checks"), ...checks);
      let [heading, task, place] = [];
      for (const box of boxes) {
        const own = box.closest("li, section");
        if (own !== task) {
          const above = own.matches("li") && title === "answers" && own.closest("section").querySelector("h2, h3, h4");
          if (above && above !== heading) part.append(made("h3", "", ...copies(above)));
          [heading, task, place] = [above, own, placeFor(own, title)];
          part.append(place);
        }
        move(box, place);
      }
      if (part.children.length > 1) document.querySelector(".bd-article").append(part);
    }
  };

  // A picture is beside the text that follows it and, where that is too short, beside the paragraphs before it. In one
  // box they stay on one sheet. How the paper breaks lines is not known yet, so lines are counted by their letters.
  const TEXT = "p, ul, ol, dl, div.math"; // a box with a title is too narrow there
  const [PIXEL, LINE, SHEET] = [25.4 / 96, 4.6, 171]; // mm of a px, of a line, and across a sheet
  const following = (part) => part.nextElementSibling ?? (part.parentElement.matches(".foretold") ? part.parentElement.nextElementSibling : null);
  // the rules for paper are not in force yet when a browser says that it prints
  const hidden = (part) => part.matches(".opening, .waits, .on-screen, .of-proof, .tag_checked") || getComputedStyle(part).display === "none";
  const linesOf = (part, letters) => (part.matches("div.math") ? 3 : Math.ceil(part.innerText.length / letters) + 0.3);
  // Blank axes are beside the question that asks to draw on them.
  const axesToQuestions = () => {
    for (const figure of document.querySelectorAll(".bd-article [data-live='sketch']")) {
      const cell = figure.closest(".cell"), box = made("div", "beside drawn");
      const question = cell.previousElementSibling;
      question.before(box);
      for (const node of [question, cell]) move(node, box);
    }
  };
  const picturesToText = () => {
    for (const cell of document.querySelectorAll(".bd-article div.cell:has(> .cell_output img)")) {
      const wide = cell.querySelector(".tall"); // then only the paragraph before stays with it
      const drawing = cell.querySelector("source") ?? cell.querySelector("img");
      const zoom = getComputedStyle(cell.querySelector("img")).getPropertyValue("--zoom");
      const [width, height] = ["width", "height"].map((side) => zoom * PIXEL * drawing.getAttribute(side));
      const letters = (SHEET - width) / 1.7; // in a line beside it
      let left = wide ? 0 : Math.min(height, 96) / LINE;
      const [before, after] = [[], []];
      for (let next = following(cell); left > 2 && next && (hidden(next) || next.matches(TEXT)); next = following(next)) {
        if (hidden(next)) continue;
        after.push(next);
        left -= linesOf(next, letters);
      }
      if (wide) left = 5;
      if (cell.matches(":has(> .cell_input)")) left = 0; // its code is as wide as the text above it
      for (let last = cell.previousElementSibling; left > 4 && last && (hidden(last) || last.matches("p, ul")); last = last.previousElementSibling) {
        if (hidden(last)) continue;
        before.unshift(last);
        left -= linesOf(last, wide ? 50 : letters);
      }
      const box = made("div", "beside");
      (before[0] ?? cell).before(box);
      for (const node of wide ? [...before, cell] : [cell, ...before, ...after]) move(node, box);
    }
  };

  const print = (now) => {
    if (now === printing) return; // two events tell of it
    printing = now;
    if (printing) {
      shown = page.dataset.theme;
      page.dataset.theme = "light";
      page.style.setProperty("--foot", JSON.stringify(`${document.title.split(" — ")[0]} · Subnorm · CC BY 4.0`));
      answersLast();
      axesToQuestions();
      picturesToText();
    } else {
      page.dataset.theme = shown;
      for (const [place, node] of moved) place.replaceWith(node);
      moved = [];
      for (const box of document.querySelectorAll(".beside, [class^='printed-']")) box.remove();
    }
  };
  // Chromium counts the sheets before the query changes, and would leave out the last ones.
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => {
    print(false);
    page.classList.remove("print-all"); // of second_reading.py
  });
  const paper = matchMedia("print");
  paper.addEventListener("change", () => print(paper.matches));
  print(paper.matches); // a page can be opened to be printed
}

// Closing a drawer on a phone returns the focus to the button that opened it, or follows a link within the page.
for (const side of ["primary", "secondary"]) {
  const drawer = document.getElementById(`pst-${side}-sidebar-modal`);
  let chosen = null;
  drawer?.addEventListener("click", ({ target }) => {
    chosen = target.closest("a[href^='#']");
    if (chosen) drawer.close(); // then the browser follows the link
  });
  drawer?.addEventListener("close", () => {
    if (!chosen) document.querySelector(`button.${side}-toggle`).focus();
    chosen = null;
  });
}

// The switches above a chapter are remembered where the browser allows it. predict.js does what the other one says.
for (const box of document.querySelectorAll("#just-read, #with-code")) {
  box.checked = subnormStore((store) => store.getItem(box.id)) !== null;
  box.addEventListener("change", () => subnormStore((store) => (box.checked ? store.setItem(box.id, "yes") : store.removeItem(box.id))));
}

// "Read with code" unfolds the code of the page, but no solution, and no code that draws: that is longer than all the rest.
{
  const box = document.getElementById("with-code");
  const show = () => document.querySelectorAll(".cell:not(.solution) details.hide").forEach((fold) => {
    fold.open = box.checked && !fold.closest(".tag_hide-input:has(.cell_output)");
  });
  if (box?.checked) show();
  box?.addEventListener("change", show);
}

// A link into a fold opens it: a cell's own, a folded section's, and all those around the target, with what waits for a
// prediction.
{
  // :target does not match yet when this runs
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.querySelector(":scope > details.hide, :scope:is(.second-reading, .question) > details")?.setAttribute("open", "");
    const around = () => target.closest("details:not([open]), .foretold[hidden]");
    const folded = around();
    for (let fold = folded; fold; fold = around()) [fold.open, fold.hidden] = [true, false];
    if (folded) target.scrollIntoView();
  };
  open();
  addEventListener("hashchange", open);
}

// The first page continues with the chapter that was opened last.
{
  const start = document.querySelector(".landing .ways a[href*='/01-']");
  if (/^Chapter/.test(document.querySelector(".chapter-of")?.textContent)) subnormStore((store) => store.setItem("subnorm.chapter", location.pathname.split("/").at(-1)));
  const last = start && subnormStore((store) => store.getItem("subnorm.chapter"));
  if (last) {
    [start.href, start.textContent] = [`../notebooks/${last}`, `Continue with chapter ${parseInt(last)}`];
    start.classList.add("on-screen"); // paper is for other readers
  }
}

// Tick the sections that have been read: their end was seen, and they were on the screen for a while, with nothing in them
// that waits for an answer, is hidden by a filter, or is an entry still folded. The contents of a sheet tick what its
// checks accept (in-page.js).
if (!document.querySelector("[data-in-page]")) {
  const WHILE = 5000; // ms
  const WAITS = ".foretold[hidden], :is(section, tr, li)[hidden], .symptom > details:not([open])";
  const page = location.pathname.split("/").at(-1);
  const key = `subnorm.read.${page}`;
  const links = new Map([...document.querySelectorAll(".page-toc .toc-h2 > a")].map((link) => [link.hash.slice(1), link]));
  const stored = (name) => new Set(JSON.parse(subnormStore((store) => store.getItem(name)) ?? "[]"));
  const add = (one, set, name) => {
    set.add(one);
    subnormStore((store) => store.setItem(name, JSON.stringify([...set])));
  };
  const [read, whole] = [stored(key), stored("subnorm.whole")]; // sections of this page, and pages read to the end
  const tick = (link) => {
    link?.classList.add("read");
    link?.setAttribute("aria-label", `${link.textContent.trim()} (read)`);
  };
  const tickPages = () => document.querySelectorAll(".bd-links a").forEach((link) => {
    if (whole.has(link.href.split("/").at(-1))) tick(link);
  });
  tickPages();
  for (const id of read) tick(links.get(id));
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (!section || read.has(id)) continue;
    let [from, before, ended, timer] = [null, 0, false, null]; // on the screen since; until then for how long
    const look = () => {
      clearTimeout(timer);
      if (!ended) return;
      const left = WHILE - before - (from === null ? 0 : performance.now() - from);
      if (left > 0) {
        if (from !== null) timer = setTimeout(look, left);
      } else {
        observer.disconnect();
        changes.disconnect();
        add(id, read, key);
        tick(links.get(id));
        if (read.size < links.size) return;
        add(page, whole, "subnorm.whole");
        tickPages();
      }
    };
    const end = section.nextElementSibling ?? document.querySelector(".prev-next-area"); // the end is seen when this comes
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (target === end) ended ||= isIntersecting && !section.querySelector(WAITS);
        else if (isIntersecting) from ??= performance.now();
        else if (from !== null) [before, from] = [before + performance.now() - from, null];
      }
      look();
    });
    const watch = () => {
      observer.disconnect(); // what is observed anew tells at once whether it is on the screen
      observer.observe(section);
      if (end) observer.observe(end);
    };
    const changes = new MutationObserver(watch); // the end moves when something opens
    changes.observe(section, { subtree: true, attributes: true, attributeFilter: ["hidden", "open"] });
    watch();
  }
}
