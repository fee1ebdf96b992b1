/**
 * uids of objects that a watch has told to be gone. An answer that was on its way meanwhile still has the object as it
 * was; kept, it would stay for ever, for the watch tells nothing more of it.
 */
export interface Gone {
  add(uid: string): void;
  has(uid: string): boolean;
  /** The watch tells of it again: it had only lost the label that the watch selects by. */
  back(uid: string): void;
}

/** Deletions remembered at least; far more than happen while an answer is on its way. */
const REMEMBERED = 5_000;

export function createGone(remembered = REMEMBERED): Gone {
  let recent = new Set<string>();
  let older = new Set<string>();
  return {
    add(uid) {
      if (recent.size >= remembered) {
        older = recent;
        recent = new Set();
      }
      recent.add(uid);
    },
    has: (uid) => recent.has(uid) || older.has(uid),
    back(uid) {
      recent.delete(uid);
      older.delete(uid);
    },
  };
}
