import type { GraphEdge, GraphNode, Nodes } from './nodes';

/** Place is where a node, or a line on its way past other nodes, lies: in its layer, and across. A node is 1 wide. */
interface Place {
  node: GraphNode | null; // null: only a line passes
  layer: number;
  across: number; // of its middle
  before: Place[]; // in the layer before
}

export interface Layout {
  places: Map<GraphNode, Place>;
  ways: { edge: GraphEdge; through: Place[] }[]; // from the node before the first one to the node after the last one
  layers: number;
  across: number; // how many nodes fit beside each other in the widest layer
}

const LINE = 0.3; // how much room a line takes that passes nodes

/**
 * layout gives each node a place near those before it. A line that spans several layers gets a place in each of them, so
 * that it passes between nodes; lines from one node share these places.
 */
export function layout({ nodes, edges }: Nodes): Layout {
  const layers: Place[][] = [];
  const add = (place: Place) => {
    (layers[place.layer] ??= []).push(place);
    return place;
  };
  const places = new Map(nodes.map((node) => [node, add({ node, layer: node.layer, across: 0, before: [] })]));
  const passing = new Map<GraphNode, Place[]>(); // from the layer after the node on
  const ways: Layout['ways'] = [];
  for (const edge of [...edges].sort((a, b) => a.to.layer - b.to.layer)) {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    if (!from || !to) {
      continue;
    }
    const chain = passing.get(edge.from) ?? [];
    passing.set(edge.from, chain);
    while (chain.length < to.layer - from.layer - 1) {
      chain.push(add({ node: null, layer: from.layer + chain.length + 1, across: 0, before: [chain.at(-1) ?? from] }));
    }
    const through = chain.slice(0, to.layer - from.layer - 1);
    to.before.push(through.at(-1) ?? from);
    ways.push({ edge, through });
  }
  layers.forEach(arrange);
  const ends = layers.flat().map((place) => [place.across - size(place) / 2, place.across + size(place) / 2]);
  const first = Math.min(0.5, ...ends.map(([start]) => start ?? 0));
  layers.flat().forEach((place) => (place.across -= first));
  return { places, ways, layers: layers.length, across: Math.max(0, ...ends.map(([, end]) => end ?? 0)) - first };
}

const size = ({ node }: Place) => (node ? 1 : LINE);

/** arrange places what is in a layer as near as possible to the middle of what is before it, without overlaps. */
function arrange(layer: Place[]) {
  const wish = ({ before }: Place) => (before.length === 0 ? 0 : before.reduce((sum, { across }) => sum + across, 0) / before.length);
  const wishes = new Map(layer.map((place) => [place, wish(place)]));
  layer.sort((a, b) => (wishes.get(a) ?? 0) - (wishes.get(b) ?? 0)); // stable: otherwise in the order of the nodes
  let end = -Infinity;
  let moved = 0;
  for (const place of layer) {
    const wished = wishes.get(place) ?? 0;
    place.across = Math.max(wished, end + size(place) / 2);
    end = place.across + size(place) / 2;
    moved += place.across - wished;
  }
  layer.forEach((place) => (place.across -= moved / layer.length));
}
