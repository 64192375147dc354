import { useState } from "react";
import { errorMessage } from "@/api/client";
import { signIn } from "@/api/routes";
import { useDialogs } from "@/state/dialogs";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";

/** Asks for the server's token, once a browser. */
export function SignInDialog() {
  const isOpen = useDialogs((state) => state.open === "signIn");
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | null>(null);

  const send = async (event: React.FormEvent) => {
    event.preventDefault();
    try {
      await signIn(token);
      setToken("");
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <Dialog
      title="Sign in"
      description="This server requires a token. You find it in the address that the server printed when it started, and in the file “token” in its data folder."
      isOpen={isOpen}
      isBlocking
      onClose={() => {}}
    >
      <form onSubmit={(event) => void send(event)} className="flex flex-col gap-3">
        <label className="flex flex-col gap-1 text-sm">
          Token
          <input
            type="password"
            autoComplete="current-password"
            className={WIDE_CONTROL}
            value={token}
            aria-invalid={problem !== null || undefined}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {problem ? (
          <p role="alert" className="text-error text-sm">
            {problem}
          </p>
        ) : null}
        <Button type="submit" look="primary" className="self-end" disabled={token === ""}>
          Sign in
        </Button>
      </form>
    </Dialog>
  );
}
