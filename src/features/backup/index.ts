// `turnpike/copies`: copies of home directories, and reports of their progress.

export { copyHome, reopenHome } from './copies.js';
export type { CopyHomeOptions, CopyReport } from './copy/copy-home.js';
export type { CopyCounts, CopyProgress } from './copy/copy-ledger.js';
export type { ProgressPart, ProgressReporter, ProgressUnit } from '../../engine/ports/progress.js';
