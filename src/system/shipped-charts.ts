import { existsSync, readFileSync } from 'node:fs';
import { parseOwnJson } from '../core/contract/json/own-json.js';
import type { Chart } from '../core/contract/inspection/inspection.js';

/** The charts of this version's machines, by hash, with the layouts that the build computed. Empty before a build. */
export function readShippedCharts(): ReadonlyMap<string, Chart> {
  const candidates = ['../../charts.json', '../../dist/charts.json'].map((path) => new URL(path, import.meta.url));
  const found = candidates.find((url) => existsSync(url));
  if (found === undefined) return new Map();
  const charts = parseOwnJson(readFileSync(found, 'utf8')) as readonly Chart[];
  return new Map(charts.map((chart) => [chart.hash, chart]));
}
