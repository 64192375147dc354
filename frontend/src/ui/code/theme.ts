import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const COLORS = HighlightStyle.define([
  {
    tag: [
      tags.definition(tags.propertyName),
      tags.propertyName,
      tags.variableName,
      tags.special(tags.variableName),
    ],
    color: "var(--text)",
  },
  { tag: tags.definition(tags.propertyName), color: "var(--syntax-name)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--syntax-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--syntax-number)" },
  {
    tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword],
    color: "var(--syntax-keyword)",
  },
  {
    tag: [
      tags.function(tags.variableName),
      tags.definition(tags.variableName),
      tags.className,
      tags.meta,
      tags.typeName,
      tags.tagName,
    ],
    color: "var(--syntax-other)",
  },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.operator], color: "var(--muted)" },
]);

const mixed = (token: string, share: number) =>
  `color-mix(in oklab, var(--${token}) ${share}%, transparent)`;
const sign = (token: string) => ({ content: '""', background: `var(--${token})` });
const underline = (token: string) => ({
  backgroundImage: "none",
  paddingBottom: "0",
  textDecoration: `underline wavy 1px var(--${token})`,
  textDecorationSkipInk: "none",
  textUnderlineOffset: "3px",
});

const RAISED = {
  backgroundColor: "var(--raised)",
  color: "var(--text)",
  fontFamily: "var(--font-sans)",
  fontSize: "12px",
};
const CONTROL = {
  height: "24px",
  border: "1px solid var(--line)",
  borderRadius: "var(--radius-1)",
  backgroundColor: "var(--surface)",
  color: "var(--text)",
  fontSize: "12px",
};

const THEME = EditorView.theme({
  "&": {
    height: "100%",
    maxHeight: "inherit",
    fontSize: "12px",
    backgroundColor: "var(--surface)",
    color: "var(--text)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    fontFamily: "var(--font-mono)",
    lineHeight: "18px",
    fontVariantLigatures: "none",
  },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--surface)",
    color: "var(--faint)",
    border: "none",
    paddingLeft: "4px",
  },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: mixed("hover", 50) },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  ".cm-foldGutter .cm-gutterElement": { cursor: "pointer" },
  ".cm-foldGutter .cm-gutterElement:hover": { color: "var(--text)" },
  ".cm-foldPlaceholder": {
    margin: "0 4px",
    padding: "0 4px",
    border: "none",
    backgroundColor: "var(--sunken)",
    color: "var(--muted)",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, ::selection":
    { backgroundColor: `${mixed("focus", 30)} !important` },
  ".cm-selectionMatch": { backgroundColor: mixed("focus", 18) },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: mixed("success-mark", 30) },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: mixed("error", 30) },
  ".cm-searchMatch": {
    backgroundColor: mixed("warning-mark", 16),
    outline: "1px dotted var(--warning-mark)",
  },
  ".cm-searchMatch-selected": {
    backgroundColor: mixed("warning-mark", 40),
    outlineStyle: "solid",
  },
  ".cm-lintRange-error": underline("error"),
  ".cm-lintRange-warning": underline("warning-mark"),
  ".cm-lintRange-info": underline("info"),
  ".cm-gutter-lint": { width: "14px" },
  ".cm-lint-marker": { width: "9px", height: "9px", margin: "4px 0 0 1px" },
  ".cm-lint-marker-error": { ...sign("error"), borderRadius: "50%" },
  ".cm-lint-marker-warning": {
    ...sign("warning-mark"),
    clipPath: "polygon(50% 0, 100% 100%, 0 100%)",
  },
  ".cm-lint-marker-info": { ...sign("info"), borderRadius: "2px" },
  ".cm-diagnostic": {
    maxWidth: "420px",
    padding: "4px 8px",
    borderLeft: "none",
    whiteSpace: "pre-wrap",
  },
  ".cm-tooltip": {
    ...RAISED,
    overflow: "hidden",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius-2)",
    boxShadow: "var(--shadow-2)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete": { overflow: "visible" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    maxHeight: "12em",
    fontFamily: "var(--font-mono)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--text)",
  },
  ".cm-completionMatchedText": { textDecoration: "none", color: "var(--accent-text)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  ".cm-completionInfo": { maxWidth: "280px", padding: "4px 8px", color: "var(--muted)" },
  ".cm-snippetField": { backgroundColor: mixed("focus", 18) },
  ".cm-panels": { ...RAISED, border: "none" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": { padding: "4px 24px 4px 8px" },
  ".cm-panel.cm-search label": {
    display: "inline-flex",
    alignItems: "center",
    gap: "4px",
    marginRight: "8px",
    fontSize: "12px",
    verticalAlign: "middle",
  },
  ".cm-panel.cm-search [name=close]": { color: "var(--muted)", fontSize: "16px" },
  ".cm-textfield": CONTROL,
  ".cm-button": { ...CONTROL, padding: "0 8px", backgroundImage: "none" },
  ".cm-button:hover": { backgroundColor: "var(--hover)" },
  ".cm-button:active": { backgroundImage: "none", backgroundColor: "var(--pressed)" },
  ".cm-panel.cm-panel-lint ul": { fontSize: "12px" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--accent-soft)" },
});

export const look = [THEME, syntaxHighlighting(COLORS)];
