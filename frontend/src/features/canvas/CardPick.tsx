import type { TellingValue } from "@/document/telling";
import { Combobox } from "@/ui/Combobox";
import { usePick } from "./usePick";

interface CardPickProps {
  node: string;
  value: TellingValue;
  className: string;
  tabIndex: number;
}

/** A value of a card that is chosen from a list, which is searched by typing. It begins open. */
export function CardPick({ node, value, className, tabIndex }: CardPickProps) {
  const { label, path, text } = value;
  const pick = usePick(node, path, label);
  if (!pick) return null;
  const { options, isOpen, choose } = pick;
  return (
    <Combobox
      label={`${label} of ${node}`}
      value={typeof value.value === "string" ? value.value : text}
      options={options}
      look={{ className, text, tabIndex }}
      startsOpen
      onChange={choose}
      {...(isOpen ? { onType: choose } : {})}
    />
  );
}
