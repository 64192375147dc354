import type { ReactNode } from "react";
import { LevelSwitch } from "./LevelSwitch";

interface InspectorHeaderProps {
  icon?: ReactNode;
  title: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  hasLevels?: boolean;
}

export function InspectorHeader({
  icon,
  title,
  subtitle,
  actions,
  hasLevels = true,
}: InspectorHeaderProps) {
  return (
    <header className="flex flex-col gap-2 border-line border-b px-4 pt-3 pb-2">
      <div className="flex items-center gap-2">
        {icon}
        <div className="min-w-0 flex-1">
          {title}
          {subtitle ? <div className="truncate text-muted text-xs">{subtitle}</div> : null}
        </div>
        {actions}
      </div>
      {hasLevels ? <LevelSwitch /> : null}
    </header>
  );
}
