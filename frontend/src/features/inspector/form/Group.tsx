import { ChevronRight } from "lucide-react";
import { Collapsible } from "radix-ui";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { problemsAt, toneOf } from "@/document/problems";
import { useCatalog } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { Tooltip } from "@/ui/Tooltip";
import type { AnyFieldProps } from "./AnyField";
import { FieldProblems } from "./FieldProblems";
import { AroundContext, placeOf, useForm } from "./FormContext";
import { GroupLabels, useLabel } from "./Labels";
import { ResetField } from "./RemoveField";

/** Path of the group that does not fold: the part of the form around it folds, and bears its name. */
export const FlatContext = createContext<string | null>(null);

interface GroupProps extends AnyFieldProps {
  aside?: ReactNode;
  note?: string;
  startsOpen?: boolean;
  children: ReactNode;
}

/** A part of a form that folds. It opens by itself when it is set, and when a problem inside is asked for. */
export function Group(props: GroupProps) {
  const { field, path, value, isRequired, aside, note, startsOpen, children } = props;
  const form = useForm();
  const { full } = placeOf(form, path);
  const label = useLabel(field.title);
  const titleId = useId();
  const titles = useMemo(() => [field.title], [field.title]);
  const inside = problemsAt(form.diagnostics, full, false);
  const isFlat = useContext(FlatContext) === full;
  const isSaidAround = useContext(AroundContext) === full;
  const own = isSaidAround ? [] : inside.filter((problem) => problem.field === full);
  const worst = toneOf(useCatalog(), inside);
  const [isOpen, setOpen] = useState(
    worst === "error" || (startsOpen ?? (value !== undefined && path.length <= 1)),
  );
  const focus = useSelection((state) => state.focus);
  const isWanted = focus?.field === full || (focus?.field?.startsWith(`${full}.`) ?? false);

  const isSet = value !== undefined;
  const wasSet = useRef(isSet);

  useEffect(() => {
    if (isWanted && focus) setOpen(true);
  }, [isWanted, focus]);

  useEffect(() => {
    if (isSet && !wasSet.current) setOpen(true);
    wasSet.current = isSet;
  }, [isSet]);

  const reset =
    value !== undefined && !isRequired && !form.isLocked(field) ? (
      <ResetField name={label} path={path} className="group-hover/head:opacity-100" />
    ) : null;
  const content = (
    <AroundContext value={full}>
      <GroupLabels titles={titles}>{children}</GroupLabels>
    </AroundContext>
  );

  if (isFlat) {
    return (
      <section data-field={full} aria-label={label}>
        {aside || note ? (
          <div className="group/head flex min-h-8 items-center gap-1">
            <span className="min-w-0 flex-1 truncate text-muted text-xs">{note}</span>
            {reset}
            {aside}
          </div>
        ) : null}
        <FieldProblems problems={own} />
        {content}
      </section>
    );
  }
  return (
    <Collapsible.Root open={isOpen} onOpenChange={setOpen} data-field={full}>
      <div className="group/head flex min-h-8 items-center gap-1">
        <Collapsible.Trigger className="flex min-w-0 flex-1 items-center gap-1 py-1 text-left">
          <ChevronRight
            size={14}
            className={`shrink-0 text-faint transition-transform ${isOpen ? "rotate-90" : ""}`}
          />
          <Tooltip text={field.help ? <RichText text={field.help} /> : null} side="left">
            <span id={titleId} className="truncate font-medium text-xs">
              {field.title}
              <span className="sr-only">{label.slice(field.title.length)}</span>
              {isRequired && value === undefined ? <span className="text-error"> *</span> : null}
            </span>
          </Tooltip>
          {note ? <span className="min-w-0 truncate text-faint text-xs">{note}</span> : null}
          {worst && !isOpen ? <SeverityIcon severity={worst} size={13} /> : null}
        </Collapsible.Trigger>
        {reset}
        {aside}
      </div>
      <FieldProblems problems={own} />
      <Collapsible.Content
        role="group"
        aria-labelledby={titleId}
        className="ml-[6px] border-line border-l pl-3"
      >
        {content}
      </Collapsible.Content>
    </Collapsible.Root>
  );
}
