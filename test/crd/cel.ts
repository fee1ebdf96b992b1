/**
 * The little of CEL that the rules of `spec.schedule` and `spec.timeZone` use, evaluated in JavaScript:
 * terms `[!]SUBJECT.matches('…')`, `[!]self.contains('…')` and `self.size() > 0` or `== 0`, joined by `||`;
 * SUBJECT is `self` or `(self.matches('…') ? self : '…' + self)`.
 * RE2 and JavaScript read the common subset alike; the suite on a real API server checks that they do.
 * @throws Error for anything else
 */
export function evaluate(rule: string, self: string): boolean {
  return compile(rule)(self);
}

const cache = new Map<string, (self: string) => boolean>();

function compile(rule: string): (self: string) => boolean {
  const known = cache.get(rule);
  if (known) return known;
  const terms = rule.split(" || ").map(compileTerm);
  const compiled = (self: string): boolean => terms.some((term) => term(self));
  cache.set(rule, compiled);
  return compiled;
}

function compileTerm(term: string): (self: string) => boolean {
  const chosen =
    /^(!?)\(self\.matches\('((?:[^'\\]|\\.)*)'\) \? self : '((?:[^'\\]|\\.)*)' \+ self\)(\.matches.*)$/.exec(
      term,
    );
  if (chosen) {
    const [, not = "", condition = "", prefix = "", rest = ""] = chosen;
    const asItIs = new RegExp(unescape(condition), "u");
    const then = compileTerm(`${not}self${rest}`);
    return (self) => then(asItIs.test(self) ? self : unescape(prefix) + self);
  }
  const call = /^(!?)self\.(matches|contains)\('((?:[^'\\]|\\.)*)'\)$/.exec(term);
  if (call) {
    const wanted = call[1] === "";
    const argument = unescape(call[3]!);
    if (call[2] === "contains") return (self) => self.includes(argument) === wanted;
    const pattern = new RegExp(argument, "u");
    return (self) => pattern.test(self) === wanted;
  }
  if (term === "self.size() > 0") return (self) => self !== "";
  if (term === "self.size() == 0") return (self) => self === "";
  throw new Error(`not in the subset of CEL that this evaluates: ${term}`);
}

/** A CEL string literal has escapes of JSON, but for the quote. */
function unescape(literal: string): string {
  return JSON.parse(`"${literal.replaceAll("\\'", "'").replaceAll('"', '\\"')}"`) as string;
}
