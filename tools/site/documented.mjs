// Which exported symbols have no comment.

import { ReflectionKind } from '../ci/typedoc.mjs';

const KINDS =
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.TypeAlias |
  ReflectionKind.Variable |
  ReflectionKind.Function;
/** What an exported class or interface must document, too; the name of a property often says everything. */
const MEMBER_KINDS = ReflectionKind.Method;

const hasComment = (reflection) =>
  reflection.hasComment() || (reflection.signatures ?? []).some((signature) => signature.hasComment());

/**
 * @param project - what typedoc read from the entry points
 * @returns the names of symbols without a comment, with the module that exports them
 */
export const undocumented = (project) =>
  (project.children ?? []).flatMap((module) =>
    (module.children ?? [])
      .filter((symbol) => symbol.kindOf(KINDS))
      .flatMap((symbol) => [symbol, ...(symbol.children ?? []).filter((member) => member.kindOf(MEMBER_KINDS))])
      .filter((symbol) => !hasComment(symbol))
      .map((symbol) => `${symbol.getFriendlyFullName()} (${ReflectionKind[symbol.kind]})`),
  );
