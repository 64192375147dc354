import { Trash2 } from "lucide-react";
import type { ReactNode } from "react";
import type { Diagnostic, JsonObject } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { problemsAt } from "@/document/problems";
import { formatName } from "@/lib/format";
import { joinPath } from "@/lib/paths";
import { useCatalog, useDocument } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { clearSelection } from "@/state/selection";
import { HelpButton } from "@/ui/HelpButton";
import { IconButton } from "@/ui/IconButton";
import { RichText } from "@/ui/RichText";
import { Segmented } from "@/ui/Segmented";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext, type FormSettings } from "./form/FormContext";
import { FormFields } from "./form/FormFields";

interface InspectorHeaderProps {
  icon?: ReactNode;
  title: ReactNode;
  subtitle?: ReactNode;
  help?: string | undefined;
  actions?: ReactNode;
  hasLevels?: boolean;
}

export function InspectorHeader(props: InspectorHeaderProps) {
  const { icon, title, subtitle, help, actions, hasLevels = true } = props;
  const isReadonly = useDocument((state) => state.isReadonly);
  return (
    <header className="flex flex-col gap-2 border-line border-b px-4 pt-3 pb-2">
      <div className="flex items-center gap-2">
        {icon}
        <div className="min-w-0 flex-1">
          {typeof title === "string" ? (
            <h2 className="truncate font-semibold text-sm" title={title}>
              {title}
            </h2>
          ) : (
            title
          )}
          {subtitle ? (
            <div className="flex items-center gap-1 text-muted text-xs">
              <span className="truncate">{subtitle}</span>
              {help ? (
                <HelpButton
                  about={typeof subtitle === "string" ? subtitle : "this"}
                  text={<RichText text={help} />}
                />
              ) : null}
            </div>
          ) : null}
        </div>
        {isReadonly ? null : actions}
      </div>
      {hasLevels ? <LevelSwitch /> : null}
    </header>
  );
}

interface RemoveButtonProps {
  label: string;
  keys?: string;
  onRemove: () => void;
}

export function RemoveButton({ label, keys, onRemove }: RemoveButtonProps) {
  const remove = () => {
    onRemove();
    clearSelection();
  };
  return (
    <IconButton
      label={label}
      keys={keys}
      size="small"
      onClick={remove}
      icon={<Trash2 size={14} />}
    />
  );
}

interface InspectorFormProps {
  form: FormSettings;
  problems?: readonly Diagnostic[];
  field: Field | null;
  value: JsonObject;
  without?: readonly string[];
  children?: ReactNode;
}

export function InspectorForm(props: InspectorFormProps) {
  const { form, field, value, without = [], children } = props;
  const { problems = problemsAt(form.diagnostics, joinPath(form.base), true) } = props;
  return (
    <>
      <FieldProblems problems={problems} />
      <FormContext value={form}>
        {children}
        {field?.shape === "object" ? (
          <FormFields field={field} value={value} without={without} />
        ) : null}
      </FormContext>
    </>
  );
}

interface InspectorPageProps extends InspectorHeaderProps {
  children: ReactNode;
}

export function InspectorPage({ children, ...header }: InspectorPageProps) {
  return (
    <>
      <InspectorHeader {...header} />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-2">{children}</div>
    </>
  );
}

/** How many fields are shown. What is set or wrong is always shown. */
function LevelSwitch() {
  const { levels } = useCatalog();
  const level = usePreferences((state) => state.level);
  return (
    <Segmented
      label="Level of detail"
      isWide
      value={level}
      options={levels.map((value) => ({ value, label: formatName(value) }))}
      onChange={(value) => setPreferences({ level: value })}
    />
  );
}
