import { FileUp } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { readForeign, useForeign } from "@/state/foreign";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";

const WAIT_MS = 400;
const EXAMPLE = "python3 -m verl.trainer.main_ppo \\\n  algorithm.adv_estimator=grpo \\\n  ...";

/** Where a configuration is pasted, dropped or chosen; it is read as it is typed. */
export function ForeignText() {
  const { text, name, problem } = useForeign();
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  const files = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (typed === null) return;
    const timer = setTimeout(() => void readForeign(typed), WAIT_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const open = async (file: File | undefined) => {
    if (!file) return;
    setTyped(null);
    await readForeign(await file.text(), file.name);
  };
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <div className="flex items-center gap-2">
        <label htmlFor={id} className="min-w-0 flex-1 truncate text-muted text-sm">
          {name ? `Configuration (${name})` : "Configuration"}
        </label>
        <input
          ref={files}
          type="file"
          accept=".py,.sh,.yaml,.yml,.toml,.txt"
          hidden
          aria-label="Configuration file"
          onChange={(event) => {
            void open(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
        <Button size="small" icon={<FileUp size={13} />} onClick={() => files.current?.click()}>
          File
        </Button>
      </div>
      <textarea
        id={id}
        value={typed ?? text}
        placeholder={EXAMPLE}
        spellCheck={false}
        rows={11}
        className={`${WIDE_CONTROL} h-auto flex-1 resize-none whitespace-pre py-1.5 font-mono text-xs leading-[18px]`}
        aria-invalid={problem !== null || undefined}
        aria-describedby={problem === null ? undefined : `${id}-problem`}
        onChange={(event) => setTyped(event.target.value)}
      />
      {problem === null ? null : (
        <p id={`${id}-problem`} className="text-error text-xs">
          {problem}
        </p>
      )}
    </div>
  );
}
