// Mutated bundles, bags and archives: `npm run campaign -- redteam --only evidence`. More options: evidence/main.ts.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { RedteamCampaign } from './campaign-runner.js';

const CASES = 200_000;
/** Approximately what two workers verify; the largest cases follow as separate processes. */
const CASES_PER_SECOND = 50;

export const campaign: RedteamCampaign = ({ seed, seconds, say }) => {
  const cases = seconds === undefined ? CASES : Math.max(1_000, seconds * CASES_PER_SECOND);
  const program = fileURLToPath(new URL('./evidence/main.js', import.meta.url));
  const argv = [program, '--seed', `${seed}`, '--cases', `${cases}`, '--largest', `${Math.ceil(cases / 100)}`];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.setEncoding('utf8').on('data', (text: string) => say(text.trimEnd()));
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({ figures: { cases }, failures: code === 0 ? [] : [`the campaign ended with ${code ?? 'a signal'}`] });
    });
  });
};
