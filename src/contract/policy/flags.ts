// The numbers of the behaviour flags under the names that code uses. machines/flags.ts says what each changes.

export const PAYLOAD_PREFIX = 1;
export const SHARED_QUOTA = 2;
export const INVALID_PROPOSALS = 3;
export const WITHHELD_EXPORTS = 4;
export const EXPORT_LOCATORS = 5;
export const COMPARED_PERSONS = 6;
export const VISIBLE_NAMES = 7;
export const EXACT_NUMBERS = 8;
export const ONE_AUTHORISATION = 9;
export const FINDINGS = 10;
export const FREE_TEXT = 11;
export const RUN_INPUTS = 12;
export const COMPARED_LOOKS = 13;
export const EXPLAINED_FAULTS = 14;
export const REPEATABLE_ACTIONS = 15;
export const FINISH_WITH_PENDING_REQUEST = 16;
export const KEY_ROTATIONS = 17;
export const VERIFIED_VOTERS = 18;
export const RESTORES = 19;
export const EXTERNAL_ACTS = 20;
export const CASE_KEY_ROTATIONS = 21;
export const CONDITIONS = 22;
export const REQUIRED_CASES = 23;
export const EXACT_CALLS = 27;
export const LOST_ENTRIES = 29;
export const OPERATOR_RUNS = 30;
