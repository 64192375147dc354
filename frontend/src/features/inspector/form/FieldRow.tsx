import { Flame, FlaskConical, Lock, LockOpen, Sparkles } from "lucide-react";
import { type ReactNode, useContext } from "react";
import type { Field } from "@/catalog/schema";
import { problemsAt } from "@/document/problems";
import { joinPath, type Path } from "@/lib/paths";
import { useWhenStill } from "@/state/choosing";
import { tryValues } from "@/state/dialogs";
import { useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { setLock, useIsLocked, useIsSolvable } from "@/state/document/locks";
import { classes } from "@/ui/classes";
import { HelpButton } from "@/ui/HelpButton";
import { IconButton } from "@/ui/IconButton";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";
import type { AnyFieldProps } from "./AnyField";
import { FieldProblems } from "./FieldProblems";
import { AroundContext, placeOf, useForm } from "./FormContext";
import { useLabel } from "./Labels";
import { isEmpty, useEntered } from "./leaving";
import { ResetField } from "./RemoveField";

interface FieldRowProps extends AnyFieldProps {
  isWide?: boolean;
  children: ReactNode;
}

export function FieldRow(props: FieldRowProps) {
  const { field, path, value, isRequired, isWide = false, isUnread = false, children } = props;
  const form = useForm();
  const { full, id } = placeOf(form, path);
  const label = useLabel(field.title);
  const { isEntered, watch } = useEntered();
  const isSaidAround = useContext(AroundContext) === full;
  const found = problemsAt(form.diagnostics, full, true).filter(
    (problem) => !(isSaidAround && problem.field === full),
  );
  const problems = isEntered && isEmpty(value) ? [] : found;
  const isSet = value !== undefined;
  const node = form.scope[0] === "nodes" ? String(form.scope[1]) : null;
  return (
    <div {...watch} data-field={full} className="group/field py-1">
      <div className={classes("flex min-h-7 gap-2", isWide ? "flex-col gap-1" : "items-center")}>
        <div
          className={classes(
            "relative flex min-w-0 items-center gap-1",
            !isWide && "w-1/2 shrink-0",
          )}
        >
          <label
            htmlFor={id}
            className={classes("line-clamp-2 text-xs leading-4", isSet && "font-medium")}
            title={field.title}
          >
            {field.title}
            {isRequired && !isSet ? <span className="text-error"> *</span> : null}
          </label>
          {field.help ? (
            <HelpButton
              about={label}
              text={<FieldHelp field={field} />}
              className="opacity-60 hover:opacity-100 focus-visible:opacity-100"
            />
          ) : null}
          <span className="flex-1" />
          <TryValues path={path} label={label} isBeside={isSet && !isRequired} />
          {isSet && !isRequired && !form.isLocked(field) ? (
            <ResetField
              name={label}
              path={path}
              className="absolute right-0 bg-surface group-hover/field:opacity-100"
            />
          ) : null}
        </div>
        <div className="min-w-0 flex-1">
          {children}
          {node === null || isSet ? null : <DecidedNote node={node} path={path} label={label} />}
        </div>
        {node === null ? null : <SolverLock node={node} path={path} label={label} />}
      </div>
      {isUnread && problems.length === 0 ? (
        <p className="text-faint text-xs">Has no effect with the current settings.</p>
      ) : null}
      <FieldProblems problems={problems} />
    </div>
  );
}

function FieldHelp({ field }: { field: Field }) {
  return (
    <span className="flex flex-col gap-1">
      <span>
        <RichText text={field.help} />
      </span>
      {field.isHot ? (
        <span className="flex items-center gap-1 text-warning">
          <Flame size={12} /> Can be changed during a run.
        </span>
      ) : null}
      {field.unit ? <span className="text-faint">In {field.unit}.</span> : null}
    </span>
  );
}

function DecidedNote({ node, path, label }: { node: string; path: Path; label: string }) {
  const full = `nodes.${node}.${joinPath(path)}`;
  const decision = useWhenStill(
    useSync((state) => state.check?.plan?.decisions.find((one) => one.path === full)),
  );
  if (!decision) return null;
  const text = decidedText(decision.value);
  return (
    <Tooltip text={<RichText text={decision.reason} />} side="left">
      <button
        type="button"
        aria-label={`Why ${label} is ${text}`}
        className="mt-0.5 flex max-w-full items-center gap-1 rounded-1 text-accent-text text-xs"
      >
        <Sparkles size={12} aria-hidden="true" className="shrink-0" />
        <span className="truncate">{text}, chosen</span>
      </button>
    </Tooltip>
  );
}

/** Keeps a setting from being changed when the loop is fitted into memory; only where fitting may change it. */
function SolverLock({ node, path, label }: { node: string; path: Path; label: string }) {
  const { store, runId } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const full = joinPath(["nodes", node, ...path]);
  const isLocked = useIsLocked(full);
  const isSolvable = useIsSolvable(node, joinPath(path));
  if (!isSolvable || isReadonly || runId !== null) return null;
  const Mark = isLocked ? Lock : LockOpen;
  return (
    <IconButton
      label={isLocked ? `Let fitting change ${label}` : `Keep fitting from changing ${label}`}
      size="small"
      aria-pressed={isLocked}
      className={`size-5 shrink-0 ${isLocked ? "text-accent-text" : "opacity-0 focus-visible:opacity-100 group-hover/field:opacity-100"}`}
      onClick={() =>
        store.dispatch(
          setLock,
          { path: full, isLocked: !isLocked },
          { label: isLocked ? "Unlock setting" : "Lock setting" },
        )
      }
      icon={<Mark size={12} />}
    />
  );
}

interface TryValuesProps {
  path: Path;
  label: string;
  /** Whether the button that removes the value stands at the end of the label. */
  isBeside: boolean;
}

/** Runs with other values of the setting, one after the other. */
function TryValues({ path, label, isBeside }: TryValuesProps) {
  const { runId } = useOpenLoop();
  const { scope } = useForm();
  const isReadonly = useDocument((state) => state.isReadonly);
  if (isReadonly || runId !== null) return null;
  return (
    <IconButton
      label={`Try values of ${label}`}
      size="small"
      className={classes(
        "absolute size-5 shrink-0 bg-surface opacity-0 focus-visible:opacity-100 group-hover/field:opacity-100",
        isBeside ? "right-6" : "right-0",
      )}
      onClick={() => tryValues(joinPath([...scope, ...path]))}
      icon={<FlaskConical size={12} />}
    />
  );
}

export function decidedText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : JSON.stringify(value);
}
