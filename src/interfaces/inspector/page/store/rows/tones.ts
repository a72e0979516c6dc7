// The severity of tones, and their colours.

import type { Tone } from '../../../../../core/contract/inspection/inspection.js';
import { NEEDS_APPROVAL } from '../../../../../core/contract/inspection/needs-approval.js';

/** The colour of a tone: six for states, one each for an approval that is needed and for invalid input, and none. */
export type Hue =
  'idle' | 'waiting' | 'running' | 'completed' | 'failed' | 'denied' | 'cancelled' | 'invalid' | 'plain';

/** The tones from harmless to worst, with their colours. The place of a tone is its number in a column. */
const HUES: Readonly<Record<Tone, Hue>> = {
  plain: 'plain',
  created: 'idle',
  allow: 'completed',
  running: 'running',
  SUCCESS: 'completed',
  completed: 'completed',
  cancelled: 'cancelled',
  [NEEDS_APPROVAL]: 'waiting',
  VALIDATION_ERROR: 'invalid',
  deny: 'denied',
  denied: 'denied',
  DENIED: 'denied',
  failed: 'failed',
  EXECUTION_ERROR: 'failed',
};
export const hueOf = (tone: Tone | 'paused'): Hue => (tone === 'paused' ? 'invalid' : HUES[tone]);

export const TONES = Object.keys(HUES) as readonly Tone[];
export const toneNumber = (tone: string): number => Math.max(0, (TONES as readonly string[]).indexOf(tone));
export const toneAt = (number: number): Tone => TONES[number] ?? 'plain';

/** Tones from this one on are marked on the scrubber. A decision that waits for an approval is not a problem. */
export const FIRST_MARKED = toneNumber(NEEDS_APPROVAL);
/** Tones from this one on are problems. */
export const FIRST_PROBLEM = toneNumber('VALIDATION_ERROR');
export const isProblem = (tone: Tone): boolean => toneNumber(tone) >= FIRST_PROBLEM;
