import { FlaskConical } from "lucide-react";
import { Link } from "wouter";
import { useCatalog, useDocument, useOpenLoop } from "@/document/context";
import { payees, payingEdges } from "@/document/rewards";

/** Where code that pays somebody is tried on rows. */
export function TryNote({ node }: { node: string }) {
  const catalog = useCatalog();
  const { loopId } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const pays = payees(catalog, document).some(({ name }) =>
    payingEdges(document, name).some((edge) => edge.node === node),
  );
  if (loopId === null || !pays) return null;
  return (
    <Link
      href={`/loops/${loopId}/rewards?source=${node}`}
      className="flex items-center gap-1 rounded-1 px-1 py-0.5 text-accent-text text-xs hover:underline"
    >
      <FlaskConical size={12} aria-hidden="true" /> Try it on rows
    </Link>
  );
}
