// How the inspector labels proposals that features submit. The service and the page make the same rows, so what is
// listed here uses nothing that a browser lacks. To remove a feature that is listed here, remove its name here too.

import type { ProposalLabel } from '../core/contract/inspection/proposal-label.js';
import { hookCallLabel } from './hooks/comparisons/call-labels.js';

export const PROPOSAL_LABELS: readonly ProposalLabel[] = [hookCallLabel];
