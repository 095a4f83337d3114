// The editor of the pages: CodeMirror 6 in place of a textarea. vendor.py bundles this into book/_static/python/editor.js.
import { autocompletion, closeCompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { python, pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorSelection, EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The classes of Pygments, which colours the listings of the book in both themes.
const CLASSES = HighlightStyle.define([
  { tag: tags.keyword, class: "k" },
  { tag: [tags.operatorKeyword], class: "ow" },
  { tag: [tags.bool, tags.null, tags.self], class: "kc" },
  { tag: tags.operator, class: "o" },
  { tag: tags.string, class: "s2" },
  { tag: tags.special(tags.string), class: "s2" },
  { tag: tags.number, class: "mi" },
  { tag: tags.comment, class: "c1" },
  { tag: tags.function(tags.definition(tags.variableName)), class: "nf" },
  { tag: tags.definition(tags.className), class: "nc" },
  { tag: tags.meta, class: "nd" },
]);

const LOOK = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "inherit" },
  "&.cm-focused": { outline: "none" }, // the frame around the editor shows the focus
  ".cm-scroller": { fontFamily: "inherit", lineHeight: "inherit" },
  ".cm-content": { padding: "0.5em 0", caretColor: "var(--pst-color-text-base)" },
  ".cm-line": { padding: "0 0.6em" },
  ".cm-gutters": { backgroundColor: "var(--pst-color-surface)", color: "var(--pst-color-text-muted)", border: "0" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "2.4em", padding: "0 0.4em 0 0" },
  ".cm-cursor": { borderLeftColor: "var(--pst-color-text-base)" },
  "& .cm-scroller .cm-selectionLayer .cm-selectionBackground": { background: "color-mix(in srgb, var(--pst-color-primary) 30%, transparent)" },
  "& .cm-matchingBracket": { background: "none", outline: "1px solid var(--pst-color-text-muted)" },
  ".cm-marked": { backgroundColor: "color-mix(in srgb, var(--pst-color-secondary) 22%, transparent)", boxShadow: "inset 3px 0 var(--pst-color-secondary)" },
  ".cm-tooltip": { backgroundColor: "var(--pst-color-surface)", color: "var(--pst-color-text-base)", border: "1px solid var(--pst-color-border)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "inherit" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--pst-color-primary)", color: "var(--pst-color-surface)" },
});

// Where AltGr counts as Control and Alt, the backslash of a German keyboard would indent the line instead.
const KEYS = defaultKeymap.filter(({ key }) => key !== "Mod-Alt-\\");

const setMark = StateEffect.define();
const mark = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects)
      if (effect.is(setMark)) {
        const { doc } = transaction.state;
        const line = effect.value >= 1 && effect.value <= doc.lines && doc.line(effect.value);
        return line ? Decoration.set(Decoration.line({ class: "cm-marked" }).range(line.from)) : Decoration.none;
      }
    return transaction.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// The indentation of each line, under which a long one goes on (subnorm.css).
const hang = EditorView.decorations.compute(["doc"], ({ doc }) => Decoration.set(Array.from({ length: doc.lines }, (_, k) => {
  const { from, text } = doc.line(k + 1);
  return Decoration.line({ attributes: { style: `--in:${/^ */.exec(text)[0].length}` } }).range(from);
})));

// Put an editor in the place of a textarea. Tab leaves it, as it leaves any field.
// `names(path)` promises the names after "path.", or nothing while Python is not running.
globalThis.subnormEditor = (textarea, { changed, run, check, names }) => {
  const attributes = (context) => {
    const found = context.matchBefore(/[A-Za-z_][\w.]*\.\w*/);
    if (!found) return null;
    const dot = found.text.lastIndexOf(".");
    return names(found.text.slice(0, dot)).then((list) => list?.length
      ? { from: found.from + dot + 1, options: list.map((label) => ({ label })), validFor: /^\w*$/ }
      : null);
  };
  const command = (act) => () => { act(); return true; };
  const view = new EditorView({
    state: EditorState.create({
      doc: textarea.value,
      selection: EditorSelection.single(textarea.selectionStart, textarea.selectionEnd),
      extensions: [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: command(run) }, { key: "Shift-Enter", run: command(check) }])),
        lineNumbers(), history(), drawSelection(), indentUnit.of("    "), EditorState.tabSize.of(4), indentOnInput(), bracketMatching(),
        python(), pythonLanguage.data.of({ autocomplete: attributes }),
        autocompletion({ icons: false, selectOnOpen: false }), // Enter ends a line until a name is chosen
        keymap.of([...completionKeymap, ...KEYS, ...historyKeymap]),
        syntaxHighlighting(CLASSES), LOOK, mark, hang,
        EditorView.contentAttributes.of({
          "aria-label": textarea.getAttribute("aria-label"),
          tabindex: "0", // it is anyway, but axe does not know
          autocapitalize: "off", autocorrect: "off", spellcheck: "false", // a phone must not change code
        }),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed(update.state.doc.toString()); }),
      ],
    }),
  });
  const focused = document.activeElement === textarea;
  textarea.replaceWith(view.dom);
  if (focused) view.focus();
  return {
    set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    // Mark a line, or none for 0.
    mark: (line) => {
      closeCompletion(view);
      view.dispatch({ effects: setMark.of(line) });
    },
  };
};
