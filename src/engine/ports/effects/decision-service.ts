import type { DecisionPoint } from '../../../core/contract/policy/decision-points.js';
import type { JsonObject } from '../../../core/contract/json.js';

/** What a service replied to one request, or why there is no reply. The reason is for the log. */
export type ServiceReply = { readonly json: JsonObject } | { readonly failed: string };

/** Sends a request to a decision point once, within its timeout. Never throws. */
export type DecisionService = (point: DecisionPoint, body: string) => Promise<ServiceReply>;
