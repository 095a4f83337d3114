// Hover cards: what a link to a term, a source, an equation or the proof of a claim leads to, beside the link, for
// pointer, keyboard and touch. Without this script the titles of links are tooltips.
{
  const card = document.createElement("div");
  card.className = "hover-card";
  card.id = "hover-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  (document.querySelector("main") ?? document.body).append(card); // within a landmark
  let [from, timer] = [null, null]; // the link whose card is shown, and what will show or hide one
  const CLAIM = "sup.claim a";
  const LINKS = `.bd-article a:is([title][href*="glossary.html#term-"], [title][href*="references.html#"], [href^="#equation-"], ${CLAIM}):not(.headerlink)`;

  const described = new Map(); // a page describes a source at the first link to it
  for (const link of document.querySelectorAll('.bd-article a[href*="references.html#"]'))
    if (link.title) described.set(link.href, link.title);
    else if (described.has(link.href)) link.title = described.get(link.href);

  for (const link of document.querySelectorAll(LINKS))
    if (link.title) [link.dataset.card, link.title] = [link.title, ""]; // else the browser shows it too

  /** The code on this page that asserts a claim; a screen reader hears only in how it was shown. */
  function proof(id) {
    const listing = document.querySelector(`p.supports a[href="#${id}"]`)?.closest(".cell").querySelector("pre");
    if (!listing) return [];
    const copy = document.createElement("div");
    copy.className = "highlight";
    copy.ariaHidden = "true";
    copy.append(listing.cloneNode(true));
    copy.firstChild.removeAttribute("id");
    return [copy];
  }

  function show(link) {
    from?.removeAttribute("aria-describedby");
    const equation = link.dataset.card ? null : document.getElementById(link.hash.slice(1))?.querySelector(".eqn");
    if (!link.dataset.card && !equation) return;
    card.replaceChildren(equation ? equation.cloneNode(true) : link.dataset.card);
    if (link.matches(CLAIM)) card.append(...proof(link.parentElement.id));
    card.hidden = false;
    card.scrollTop = 0;
    from = link;
    link.setAttribute("aria-describedby", card.id);
    const [at] = link.getClientRects(); // of a link on two lines, the first part
    const width = document.documentElement.clientWidth;
    // the sentence of a claim is above its mark
    const above = at.top > card.offsetHeight + 60 && !(link.matches(CLAIM) && at.bottom + card.offsetHeight + 8 < innerHeight);
    card.style.left = `${scrollX + Math.max(8, Math.min(at.left, width - card.offsetWidth - 8))}px`;
    card.style.top = `${scrollY + (above ? at.top - card.offsetHeight - 4 : at.bottom + 4)}px`;
  }

  function hide() {
    from?.removeAttribute("aria-describedby");
    from = null;
    card.hidden = true;
  }

  const soon = (act, wait) => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    const link = pointerType === "mouse" && target.closest(LINKS);
    if (link) soon(() => show(link), link === from ? 0 : 300);
    else if (card.contains(target)) clearTimeout(timer); // the reader may select its text
    else if (from !== document.activeElement && (!card.hidden || timer)) soon(hide, 200); // a page that scrolls to the focus moves the mouse, too
  });
  document.addEventListener("focusin", ({ target }) => {
    if (!target.matches(LINKS) || !target.matches(":focus-visible")) return;
    clearTimeout(timer);
    show(target);
  });
  document.addEventListener("focusout", () => soon(hide, 0));
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
  const ONWARD = { "claims.html": "In the ledger of claims", "glossary.html": "In the glossary", "references.html": "In the references" };
  document.addEventListener("click", (event) => { // the second tap follows the link, and so does the one in the card
    const link = event.pointerType === "touch" && event.target.closest(LINKS);
    if (!link || link === from) return;
    show(link);
    if (link !== from) return; // it has no card
    event.preventDefault();
    clearTimeout(timer);
    const onward = document.createElement("a");
    onward.href = link.href;
    onward.textContent = ONWARD[link.pathname.split("/").at(-1)] ?? "To the equation";
    card.firstChild.after(document.createElement("br"), onward);
  });
}
