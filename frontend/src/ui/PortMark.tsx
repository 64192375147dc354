import type { CSSProperties, ReactNode } from "react";
import type { Catalog } from "@/api/types";

interface PortMarkProps {
  type: Pick<Catalog["port_types"][string], "shape" | "color" | "handle"> | undefined;
  isConnected?: boolean;
  size?: number;
}

const PATHS: Record<string, ReactNode> = {
  circle: <circle cx="6" cy="6" r="4.4" />,
  square: <rect x="1.9" y="1.9" width="8.2" height="8.2" rx="1.2" />,
  diamond: <path d="M6 .9 11.1 6 6 11.1.9 6Z" />,
  triangle: <path d="M6 1.2 11 10.2H1Z" />,
  hexagon: <path d="M6 .8 10.6 3.4v5.2L6 11.2 1.4 8.6V3.4Z" />,
  ring: <circle cx="6" cy="6" r="4.4" />,
  pentagon: <path d="M6 .9 11.2 4.8 9.2 10.9H2.8L.8 4.8Z" />,
};

export function portColor(token: string | undefined): string {
  if (!token) return "var(--muted)";
  return `var(${token.startsWith("--") ? token : `--${token}`})`;
}

/** A port's sign: one shape and one colour for each type, so that neither is needed alone. */
export function PortMark({ type, isConnected = true, size = 12 }: PortMarkProps) {
  const { shape = "circle", color = "", handle: isHandle = false } = type ?? {};
  const style: CSSProperties = {
    fill: isConnected && !isHandle ? portColor(color) : "var(--surface)",
    stroke: portColor(color),
    strokeWidth: 1.6,
    strokeDasharray: isHandle ? "2 1.4" : undefined,
  };
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 12 12"
      aria-hidden="true"
      className="overflow-visible"
      style={style}
    >
      {PATHS[shape] ?? PATHS.circle}
    </svg>
  );
}
