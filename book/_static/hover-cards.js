// Cards: what a link to a term, a source, an equation or the proof of a claim leads to, beside the link. A card comes with
// the pointer or the focus, and goes with it. A click, a tap or Enter pins it: then it leads on, as a second one does, and
// stays until Escape, or until the reader goes elsewhere. Without this script the titles of links are tooltips.
{
  const make = (name, parts) => Object.assign(document.createElement(name), parts);
  const card = make("div", { className: "hover-card", id: "hover-card", hidden: true });
  (document.querySelector("main") ?? document.body).append(card); // within a landmark
  let [from, timer, pinned] = []; // the link whose card is shown, what will show or hide one, and whether the card stays
  const CLAIM = "sup.claim a";
  const LINKS = `.bd-article a:is([title][href*="glossary.html#term-"], [title][href*="references.html#"], [href^="#equation-"], ${CLAIM}):not(.headerlink)`;

  const described = new Map(); // a page describes a source at the first link to it
  for (const link of document.querySelectorAll('.bd-article a[href*="references.html#"]'))
    if ((link.title ||= described.get(link.href) ?? "")) described.set(link.href, link.title);

  for (const link of document.querySelectorAll(LINKS))
    if (link.title) [link.dataset.card, link.title] = [link.title.replaceAll(" · ", "\n"), ""]; // else the browser shows it too

  /** The lines of code on this page that assert a claim; a screen reader hears only in how it was shown. */
  function proof(id) {
    const code = document.querySelector(`p.supports a[href="#${id}"]`)?.closest(".cell").querySelector("pre")?.textContent;
    const lines = code?.match(/^( *)(?:assert|np\.testing)\b.*(?:\n\1[ )\]].*)*/gm);
    return lines ? make("pre", { textContent: lines.join("\n"), ariaHidden: "true" }) : "";
  }

  const ONWARD = { "claims.html": "In the ledger of claims", "glossary.html": "In the glossary", "references.html": "In the references" };
  /** Show the card of a link, if it has one: a tooltip, or one that stays, with a link that leads on. */
  function show(link, stays = false) {
    hide();
    const equation = link.dataset.card ? null : document.getElementById(link.hash.slice(1))?.querySelector(".eqn");
    if (!link.dataset.card && !equation) return;
    card.replaceChildren(equation?.cloneNode(true) ?? link.dataset.card, link.matches(CLAIM) ? proof(link.parentElement.id) : "",
      stays ? make("a", { href: link.href, textContent: ONWARD[link.pathname.split("/").at(-1)] ?? "To the equation" }) : "");
    card.setAttribute("role", stays ? "group" : "tooltip");
    card.hidden = false;
    card.scrollTop = 0;
    [from, pinned] = [link, stays];
    link.setAttribute("aria-describedby", card.id);
    const [at] = link.getClientRects(); // of a link on two lines, the first part
    const width = document.documentElement.clientWidth;
    // The sentence of a mark is above it, so that card opens below; without room it goes above, for the mouse alone. Any
    // other link is in the middle of what is being read, so its card covers the lines that have been read.
    const short = at.bottom + card.offsetHeight + 8 - innerHeight;
    const above = at.top > card.offsetHeight + 60 && (!link.matches(CLAIM) || (short > 0 && !stays));
    card.style.left = `${scrollX + Math.max(8, Math.min(at.left, width - card.offsetWidth - 8))}px`;
    card.style.top = `${scrollY + (above ? at.top - card.offsetHeight - 4 : at.bottom + 4)}px`;
    if (short > 0 && ((stays && !above) || getComputedStyle(card).position === "fixed")) scrollBy(0, short); // a sheet on a phone
  }

  function hide() {
    clearTimeout(timer);
    from?.removeAttribute("aria-describedby");
    card.hidden = true;
    from = pinned = timer = null;
  }

  const soon = (act, wait) => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pinned) return;
    const link = pointerType === "mouse" && target.closest(LINKS);
    if (link) soon(() => show(link), link === from ? 0 : 300);
    else if (card.contains(target)) clearTimeout(timer); // the reader may select its text
    // a page that scrolls to the focus moves the mouse, too
    else if (!from?.matches(":focus-visible") && (!card.hidden || timer)) soon(hide, 200);
  });
  document.addEventListener("focusin", ({ target }) => { if (target.matches(LINKS) && target.matches(":focus-visible")) show(target); });
  document.addEventListener("focusout", ({ relatedTarget: to }) => { if (!(pinned && (!to || card.contains(to)))) soon(hide, 0); });
  document.addEventListener("keydown", (event) => {
    const { key, shiftKey } = event, leaves = card.contains(document.activeElement);
    if (key !== "Escape" && !(key === "Tab" && leaves)) return;
    if (leaves) from.focus(); // the card is not beside its link in the order of the page
    if (key === "Escape") hide();
    else if (shiftKey) event.preventDefault();
  });
  // a touch that scrolls has no such event
  document.addEventListener("pointerup", ({ target }) => { if (pinned && !card.contains(target) && !from.contains(target)) hide(); });
  document.addEventListener("click", (event) => {
    if (event.target.closest(".hover-card a")) return hide();
    const link = event.target.closest(LINKS);
    if (!link || (pinned && link === from) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    show(link, true);
    if (!pinned) return; // it has no card
    event.preventDefault();
    if (!event.detail) card.lastChild.focus(); // of a key
  });
}
