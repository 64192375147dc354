import { type Compared, errorText } from "./predicted";

interface PredictedProps {
  title: string;
  rows: readonly Compared[];
  format: (value: number | null) => string;
}

/** What was predicted beside what was measured, with the error of each prediction. */
export function Predicted({ title, rows, format }: PredictedProps) {
  if (rows.length === 0) return null;
  const largest = Math.max(...rows.flatMap((row) => [row.predicted ?? 0, row.measured ?? 0]));
  return (
    <table aria-label={title} className="w-full table-fixed text-sm">
      <thead>
        <tr className="text-left text-muted text-xs">
          <th className="py-1 font-medium">{title}</th>
          <th className="w-24 py-1 text-right font-medium">Predicted</th>
          <th className="w-24 py-1 text-right font-medium">Measured</th>
          <th className="w-60 py-1 pl-4 font-medium">Error</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name} className="border-line border-t">
            <th scope="row" className="truncate py-1 text-left font-normal">
              {row.isStep ? <b>{row.name}</b> : row.name}
            </th>
            <td className="tabular py-1 text-right text-muted">{format(row.predicted)}</td>
            <td className="tabular py-1 text-right">{format(row.measured)}</td>
            <td className="py-1 pl-4">
              <span className="flex items-center gap-2">
                <span className="flex w-24 flex-col gap-0.5" aria-hidden="true">
                  <Bar share={(row.predicted ?? 0) / largest} look="bg-line-strong" />
                  <Bar share={(row.measured ?? 0) / largest} look="bg-muted" />
                </span>
                <span className="tabular">{errorText(row)}</span>
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Bar({ share, look }: { share: number; look: string }) {
  return (
    <span
      className={`h-1 rounded-full ${look}`}
      style={{ width: `${Number.isFinite(share) ? share * 100 : 0}%` }}
    />
  );
}
