// The data of a ledger inside the one-file page, which reads it in place of a service.

import type {
  Chart,
  Course,
  DecisionExplanation,
  EventDetails,
  LedgerInfo,
  RowPage,
  StepStory,
} from '../../core/contract/inspection/inspection.js';
import type { SessionView } from './contract/session-view.js';

/** The data of a ledger inside the one-file page. Members of maps have the names of the service's routes. */
export interface InlineData {
  readonly info: LedgerInfo;
  readonly pages: RowPage[];
  readonly entries: string[];
  readonly events: Record<string, Pick<EventDetails, 'leaf_hash' | 'artifacts'>>;
  /** Base64 contents by SHA-256. */
  readonly artifacts: Record<string, string>;
  readonly courses: Record<string, Course>;
  readonly charts: Record<string, Chart>;
  readonly steps: Record<string, StepStory>;
  readonly whys: Record<string, DecisionExplanation>;
  readonly sessions: Record<string, SessionView>;
}
