"""The graph of a loop as SVG, for trackers: columns from data to scorers, lessons dashed."""

from html import escape

from coloop.spec.graph import LoopSpec

WIDTH, HEIGHT = 150, 44
GAP_X, GAP_Y, MARGIN = 70, 22, 16
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2430}.kind{font-size:10px;fill:#667085}"
    "rect{fill:#fff;stroke:#98a2b3}path{fill:none;stroke:#667085}.lesson{stroke-dasharray:4 3}"
)


def picture_of(spec: LoopSpec) -> str:
    places = _places(spec)
    columns = max((x for x, _ in places.values()), default=0) + 1
    rows = max((y for _, y in places.values()), default=0) + 1
    width = 2 * MARGIN + columns * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + rows * (HEIGHT + GAP_Y) - GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{STYLE}</style>'
        f'<rect width="{width}" height="{height}" style="stroke:none"/>'
    ]
    for edge in spec.edges:
        is_lesson = edge.target.port in spec.graph.teaching_ports(edge.target.node)
        x1, y1 = _corner(places[edge.source.node])
        x2, y2 = _corner(places[edge.target.node])
        start, end = (x1 + WIDTH, y1 + HEIGHT / 2), (x2, y2 + HEIGHT / 2)
        bend = max(40, (end[0] - start[0]) / 2)
        look = ' class="lesson"' if is_lesson else ""
        parts.append(
            f'<path{look} d="M{start[0]} {start[1]}C{start[0] + bend} {start[1]} '
            f'{end[0] - bend} {end[1]} {end[0]} {end[1]}"/>'
        )
    for name, place in places.items():
        x, y = _corner(place)
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
            f'<text x="{x + 10}" y="{y + 19}">{escape(name[:22])}</text>'
            f'<text class="kind" x="{x + 10}" y="{y + 34}">{escape(spec.nodes[name].kind)}</text>'
        )
    return "".join(parts) + "</svg>"


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    column, row = place
    return MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)


def _places(spec: LoopSpec) -> dict[str, tuple[int, int]]:
    """Column and row of each node: right of every node that it reads, lessons left out."""
    columns = dict.fromkeys(spec.nodes, 0)
    ahead = [
        (edge.source.node, edge.target.node)
        for edge in spec.edges
        if edge.target.port not in spec.graph.teaching_ports(edge.target.node)
    ]
    for _ in spec.nodes:  # a circle ends after as many rounds as there are nodes
        moved = False
        for source, target in ahead:
            column = min(columns[source] + 1, len(spec.nodes) - 1)
            if columns[target] < column:
                columns[target], moved = column, True
        if not moved:
            break
    used = sorted(set(columns.values()))
    rows: dict[int, int] = {}
    places = {}
    for name in spec.nodes:
        column = used.index(columns[name])
        places[name] = (column, rows.get(column, 0))
        rows[column] = rows.get(column, 0) + 1
    return places
