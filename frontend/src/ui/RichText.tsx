/** Help text: words between backticks are code. */
export function RichText({ text }: { text: string }) {
  return text.split("`").map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      <code key={index} className="rounded-[3px] bg-hover px-1 font-mono text-[0.92em]">
        {part}
      </code>
    ),
  );
}
