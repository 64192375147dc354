import { CircleHelp } from "lucide-react";
import type { ReactNode } from "react";
import { formatName } from "@/lib/format";
import { useCatalog } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { RichText } from "@/ui/RichText";
import { Segmented } from "@/ui/Segmented";
import { Tooltip } from "@/ui/Tooltip";

interface InspectorHeaderProps {
  icon?: ReactNode;
  title: ReactNode;
  subtitle?: ReactNode;
  help?: string | undefined;
  actions?: ReactNode;
  hasLevels?: boolean;
}

export function InspectorHeader({
  icon,
  title,
  subtitle,
  help,
  actions,
  hasLevels = true,
}: InspectorHeaderProps) {
  return (
    <header className="flex flex-col gap-2 border-line border-b px-4 pt-3 pb-2">
      <div className="flex items-center gap-2">
        {icon}
        <div className="min-w-0 flex-1">
          {title}
          {subtitle ? (
            <div className="flex items-center gap-1 text-muted text-xs">
              <span className="truncate">{subtitle}</span>
              {help ? (
                <Tooltip text={<RichText text={help} />} side="left">
                  <button
                    type="button"
                    aria-label={`About ${typeof subtitle === "string" ? subtitle : "this"}`}
                    className="inline-flex shrink-0 text-faint hover:text-text"
                  >
                    <CircleHelp size={12} />
                  </button>
                </Tooltip>
              ) : null}
            </div>
          ) : null}
        </div>
        {actions}
      </div>
      {hasLevels ? <LevelSwitch /> : null}
    </header>
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
