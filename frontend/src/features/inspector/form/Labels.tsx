import { createContext, type ReactNode, useContext, useMemo } from "react";
import { ambiguous, wholeLabel } from "@/catalog/labels";
import type { Field } from "@/catalog/schema";

interface Labels {
  ambiguous: ReadonlySet<string>;
  groups: readonly string[];
  isOneOfMany: boolean;
}

const LabelContext = createContext<Labels>({
  ambiguous: new Set(),
  groups: [],
  isOneOfMany: false,
});

/** What a control of this title is called where it stands: no other of the form is called so. */
export function useLabel(title: string): string {
  const labels = useContext(LabelContext);
  const whole = wholeLabel(title, labels.groups);
  return labels.isOneOfMany || labels.ambiguous.has(whole) ? whole : title;
}

export function FormLabels({ form, children }: { form: Field; children: ReactNode }) {
  const labels = useMemo(
    () => ({ ambiguous: ambiguous(form), groups: [], isOneOfMany: false }),
    [form],
  );
  return <LabelContext value={labels}>{children}</LabelContext>;
}

interface GroupLabelsProps {
  titles?: readonly string[];
  isOneOfMany?: boolean;
  children: ReactNode;
}

const NO_TITLES: readonly string[] = [];

export function GroupLabels(props: GroupLabelsProps) {
  const { titles = NO_TITLES, isOneOfMany = false, children } = props;
  const around = useContext(LabelContext);
  const labels = useMemo(
    () => ({
      ambiguous: around.ambiguous,
      groups: [...around.groups, ...titles],
      isOneOfMany: around.isOneOfMany || isOneOfMany,
    }),
    [around, titles, isOneOfMany],
  );
  return <LabelContext value={labels}>{children}</LabelContext>;
}
