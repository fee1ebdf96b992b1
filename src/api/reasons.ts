/**
 * Every reason that the operator gives: for events (native CronJob's words where it has one), conditions and decisions.
 * docs/reasons.md explains each; a test holds the two together.
 */

/** Reasons of events. The first block is native CronJob's, so that alerts written for it go on working. */
export const EventReason = {
  SuccessfulCreate: "SuccessfulCreate",
  FailedCreate: "FailedCreate",
  SawCompletedJob: "SawCompletedJob",
  SuccessfulDelete: "SuccessfulDelete",
  FailedDelete: "FailedDelete",
  JobAlreadyActive: "JobAlreadyActive",
  MissSchedule: "MissSchedule",
  MissingJob: "MissingJob",
  UnexpectedJob: "UnexpectedJob",
  UnparseableSchedule: "UnparseableSchedule",
  UnknownTimeZone: "UnknownTimeZone",

  ForeignJob: "ForeignJob",
  TemplateRejected: "TemplateRejected",
  InvalidAnnotation: "InvalidAnnotation",
  TakenOver: "TakenOver",
  LockAcquired: "LockAcquired",
  LockLost: "LockLost",
  LockStuck: "LockStuck",
  LabelRestored: "LabelRestored",
  LockTakenOver: "LockTakenOver",
  MutexBusy: "MutexBusy",
  MutexNotAllowed: "MutexNotAllowed",
  MutexClash: "MutexClash",
  LedgerUnreadable: "LedgerUnreadable",
  LedgerBlocked: "LedgerBlocked",
} as const;
export type EventReason = (typeof EventReason)[keyof typeof EventReason];

/** Events that come with each run and say that all is well: recorded only when the operator logs at level debug. */
export const DEBUG_EVENTS: readonly EventReason[] = [EventReason.LockAcquired];

/** Condition types of status.conditions. */
export const ConditionType = {
  Ready: "Ready",
  ScheduleValid: "ScheduleValid",
  TemplateAccepted: "TemplateAccepted",
  ClockChangeSafe: "ClockChangeSafe",
  LockBackendAvailable: "LockBackendAvailable",
  Suspended: "Suspended",
  /** kstatus: it cannot go on without an edit. */
  Stalled: "Stalled",
  /** kstatus: it is being worked on. */
  Reconciling: "Reconciling",
  MutexesAvailable: "MutexesAvailable",
} as const;
export type ConditionType = (typeof ConditionType)[keyof typeof ConditionType];

/** Reasons of conditions, and of the decisions that `decide` takes. */
export const Reason = {
  // Why a tick was launched, or how it goes on.
  Due: "Due",
  Triggered: "Triggered",
  Backfill: "Backfill",
  CaughtUp: "CaughtUp",
  TakeOver: "TakeOver",
  RetryAfterRefusal: "RetryAfterRefusal",
  JobObserved: "JobObserved",
  JobFinished: "JobFinished",
  JobGone: "JobGone",
  Replaced: "Replaced",
  AtMostExceeded: "AtMostExceeded",
  AtLeastKept: "AtLeastKept",

  // Why nothing was launched.
  ClockSkew: "ClockSkew",
  NotDue: "NotDue",
  NeverFires: "NeverFires",
  Suspended: "Suspended",
  Deleted: "Deleted",
  StandBy: "StandBy",
  LaunchInProgress: "LaunchInProgress",
  JobAlreadyActive: "JobAlreadyActive",
  TooManyRuns: "TooManyRuns",
  LockHeld: "LockHeld",
  NoQuorum: "NoQuorum",
  CreateRefused: "CreateRefused",
  ForeignJob: "ForeignJob",
  InvalidAnnotation: "InvalidAnnotation",

  // Mutexes: why a tick waits, or will never run.
  MutexBusy: "MutexBusy",
  MutexNotAllowed: "MutexNotAllowed",
  MutexClash: "MutexClash",
  MutexesTaken: "MutexesTaken",

  // Why a tick will never run.
  TooLate: "TooLate",
  Superseded: "Superseded",
  NotCaughtUp: "NotCaughtUp",
  CatchUpLimit: "CatchUpLimit",
  QueueFull: "QueueFull",

  // Ledger upkeep.
  LedgerMissing: "LedgerMissing",
  LedgerOfNamesake: "LedgerOfNamesake",
  LedgerUnreadable: "LedgerUnreadable",
  LedgerBlocked: "LedgerBlocked",
  ScheduleChanged: "ScheduleChanged",
  Resumed: "Resumed",
  AttemptSettled: "AttemptSettled",
  FinalizerPending: "FinalizerPending",

  // Conditions.
  Scheduled: "Scheduled",
  ScheduleParsed: "ScheduleParsed",
  TemplateTaken: "TemplateTaken",
  TemplateRejected: "TemplateRejected",
  NotSuspended: "NotSuspended",
  RunsUnaffected: "RunsUnaffected",
  RunsAffected: "RunsAffected",
  UnparseableSchedule: "UnparseableSchedule",
  UnknownTimeZone: "UnknownTimeZone",
  QuorumReachable: "QuorumReachable",
  QuorumLost: "QuorumLost",
  MutexesFree: "MutexesFree",
} as const;
export type Reason = (typeof Reason)[keyof typeof Reason];
