// What features add to the page of the inspector. It is bundled with the page, so it uses nothing that a browser lacks.
// To remove a feature that is listed here, remove its name here too.

import type { AddedRunView } from '../interfaces/inspector/page/views/common/context.js';
import { CoverageLine } from './hooks/page/coverage-line.js';
import { SessionPanel } from './sessions/page/session-panel.js';

/** Lines above the views of a run. */
export const RUN_LINES: readonly AddedRunView[] = [CoverageLine];

/** What the tab `Session` shows. Without an element, there is no such tab. */
export const SESSION_PANELS: readonly AddedRunView[] = [SessionPanel];
