import { NATIVE_TOOLS } from '../native-tools.js';
import { defineExternalTool, type Tool } from '../../../runtime/effects/define-effects.js';
import type { AddedTools } from '../../../runtime/effects/tools-of-features.js';

/** The tools of coding agents as tools whose caller executes them (U-08). */
const nativeTools = (): readonly Tool[] =>
  NATIVE_TOOLS.map(({ name, summary, input, outside, timeout }) =>
    // What a coding agent reads belongs to its project: policy separates projects by their cases.
    defineExternalTool({ name, summary, input, outside, timeout, confidentiality: [] }),
  );

export const openNativeTools = (): AddedTools => ({
  tools: nativeTools(),
  problems: [],
  close: () => Promise.resolve(),
});
