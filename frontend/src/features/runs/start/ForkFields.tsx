import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { fetchRunSpec } from "@/api/routes";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import type { Values } from "./ForkChanges";
import { changeables, readTyped } from "./fork";

interface ForkFieldsProps {
  run: string;
  /** What is written, by path; an empty text changes nothing. */
  typed: Readonly<Record<string, string>>;
  onTyped: (typed: Record<string, string>) => void;
}

/** What a fork may have otherwise: a few fields that are often changed, and any other by its path. */
export function ForkFields({ run, typed, onTyped }: ForkFieldsProps) {
  const { data } = useQuery({
    queryKey: ["run", run, "spec", "written"],
    queryFn: () => fetchRunSpec(run),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [path, setPath] = useState("");
  const usual = data?.spec ? changeables(data.spec) : [];
  const others = Object.keys(typed).filter((one) => !usual.some((field) => field.path === one));
  const fields = [
    ...usual.map(({ path, label, value }) => ({ path, label, asIs: String(value) })),
    ...others.map((path) => ({ path, label: path, asIs: "" })),
  ];
  const add = () => {
    const wanted = path.trim();
    if (wanted === "" || wanted in typed) return;
    onTyped({ ...typed, [wanted]: "" });
    setPath("");
  };
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="mb-1 font-medium">What to change</legend>
      {fields.map(({ path, label, asIs }) => (
        <label key={path} className="flex items-center gap-3">
          <span className="w-60 truncate text-muted" title={path}>
            {label}
          </span>
          <input
            className={`${CONTROL} tabular w-40`}
            value={typed[path] ?? ""}
            placeholder={asIs}
            onChange={(event) => onTyped({ ...typed, [path]: event.target.value })}
          />
        </label>
      ))}
      <div className="flex items-center gap-3">
        <input
          aria-label="Another field, by its path"
          className={`${CONTROL} w-60 font-mono text-xs`}
          value={path}
          placeholder="nodes.actor.rollout.temperature"
          onChange={(event) => setPath(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && add()}
        />
        <Button size="small" icon={<Plus size={12} />} onClick={add}>
          Add field
        </Button>
      </div>
    </fieldset>
  );
}

/** The fields that were filled, as values by path. */
export function valuesOf(typed: Readonly<Record<string, string>>): Values {
  const filled = Object.entries(typed).filter(([, text]) => text.trim() !== "");
  return Object.fromEntries(filled.map(([path, text]) => [path, readTyped(text)]));
}
