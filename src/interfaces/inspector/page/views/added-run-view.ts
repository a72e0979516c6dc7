import type { FunctionComponent } from 'preact';
import type { Run } from '../store/rows/runs.js';

/** What a feature shows of a run. */
export type AddedRunView = FunctionComponent<{ readonly run: Run }>;
