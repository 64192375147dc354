import { CircleX, Info, TriangleAlert } from "lucide-react";
import type { Severity } from "@/api/types";

const LOOK = {
  error: { Icon: CircleX, className: "text-error" },
  warning: { Icon: TriangleAlert, className: "text-warning" },
  hint: { Icon: Info, className: "text-info" },
} as const;

export function SeverityIcon({ severity, size = 14 }: { severity: Severity; size?: number }) {
  const { Icon, className } = LOOK[severity];
  return <Icon size={size} className={`shrink-0 ${className}`} role="img" aria-label={severity} />;
}
