// Who reports the outcome of an action that its caller has executed, and how certain the report is (U-10).

import Type, { type Static } from 'typebox';
import { Actor, closed, OneOf } from '../shapes.js';

/**
 * Whether a report belongs to its run: `exact` if the caller knows it, `ambiguous` if it has chosen among several equal
 * actions.
 */
export const REPORT_MATCHES = ['exact', 'ambiguous'] as const;
/** One of `REPORT_MATCHES`. */
export type ReportMatch = (typeof REPORT_MATCHES)[number];

/** The origin of a reported outcome. */
export const ReportOrigin = Type.Object({ actor: Actor, match: OneOf(REPORT_MATCHES) }, closed);
export type ReportOrigin = Static<typeof ReportOrigin>;
