import { useEffect, useState } from "react";
import type { LoopVersion } from "@/api/types";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";

interface VersionLabelProps {
  version: LoopVersion;
  onLabel: (label: string | null) => void;
}

/** What a person calls a version; one that is called something stays for good. */
export function VersionLabel({ version, onLabel }: VersionLabelProps) {
  const [typed, setTyped] = useState(version.label ?? "");
  useEffect(() => setTyped(version.label ?? ""), [version.label]);
  const label = typed.trim() || null;
  return (
    <form
      className="flex min-w-0 flex-1 items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        onLabel(label);
      }}
    >
      <input
        aria-label={`Name of version ${version.version}`}
        placeholder="Name this version"
        maxLength={200}
        className={`${CONTROL} min-w-0 flex-1`}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
      <Button type="submit" disabled={label === version.label}>
        {label === null && version.label !== null ? "Remove name" : "Name"}
      </Button>
    </form>
  );
}
