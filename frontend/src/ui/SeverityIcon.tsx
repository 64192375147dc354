import { ArrowRight, CircleX, Info, TriangleAlert } from "lucide-react";
import type { Tone } from "@/document/problems";

const LOOK = {
  error: { Icon: CircleX, className: "text-error" },
  warning: { Icon: TriangleAlert, className: "text-warning" },
  hint: { Icon: Info, className: "text-info" },
  "next step": { Icon: ArrowRight, className: "text-muted" },
} as const;

export function SeverityIcon({ severity, size = 14 }: { severity: Tone; size?: number }) {
  const { Icon, className } = LOOK[severity];
  return <Icon size={size} className={`shrink-0 ${className}`} role="img" aria-label={severity} />;
}
