import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { useTrust } from "./trust";

/** A run of a model that brings its own Python asks once more. */
export function TrustDialog() {
  const asking = useTrust((state) => state.asking);
  return (
    <Dialog
      title="Run the model’s own Python?"
      description="The model’s folder contains Python code, which runs in the engine with your permissions and outside of the sandbox. Run it only if you trust the author of the model."
      isOpen={asking !== null}
      onClose={() => asking?.answer(false)}
      footer={
        <>
          <Button onClick={() => asking?.answer(false)}>Do not run</Button>
          <Button look="danger" onClick={() => asking?.answer(true)}>
            Run its Python
          </Button>
        </>
      }
    >
      <ul className="flex flex-col gap-1 font-mono text-sm">
        {asking?.paths.map((path) => (
          <li key={path} className="break-all">
            {path}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
