import { existsSync, readFileSync } from 'node:fs';
import { parseOwnJson } from '../core/contract/json.js';
import type { Chart } from '../core/contract/inspection/inspection.js';
import { packageFile } from './package-files.js';

/** The charts of this version's machines, by hash, with the layouts that the build computed. Empty before a build. */
export function readShippedCharts(): ReadonlyMap<string, Chart> {
  const path = [packageFile('charts.json'), packageFile('dist/charts.json')].find((each) => existsSync(each));
  if (path === undefined) return new Map();
  const charts = parseOwnJson(readFileSync(path, 'utf8')) as readonly Chart[];
  return new Map(charts.map((chart) => [chart.hash, chart]));
}
