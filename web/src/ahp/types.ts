/** The states and messages of AHP 1.0.0 as the page reads them. Members that are not listed here are kept as they are. */

export type Uri = string;
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Meta = Record<string, unknown>;
export type StringOrMarkdown = string | { markdown: string };

export interface Action {
  type: string;
  [field: string]: unknown;
}

export interface ActionEnvelope {
  channel: Uri;
  action: Action;
  serverSeq: number;
  origin?: { clientId: string; clientSeq: number };
  rejectionReason?: string;
}

export interface Snapshot {
  resource: Uri;
  state: unknown;
  fromSeq: number;
}

export interface ErrorInfo {
  errorType: string;
  message: string;
  stack?: string;
  _meta?: Meta;
}

export interface ContentRef {
  uri: Uri;
  sizeHint?: number;
  contentType?: string;
  nonce?: string;
}

export interface Icon {
  src: Uri;
  contentType?: string;
}

export interface TextRange {
  start: { line: number; character: number };
  end: { line: number; character: number };
}

// Root

export interface ConfigProperty {
  type: "string" | "number" | "boolean" | "array" | "object";
  title: string;
  description?: string;
  default?: unknown;
  enum?: (string | number | boolean | null)[];
  enumLabels?: string[];
  enumDescriptions?: string[];
  readOnly?: boolean;
  items?: ConfigProperty;
  enumDynamic?: boolean;
  sessionMutable?: boolean;
}

export interface ConfigSchema {
  type: "object";
  properties: Record<string, ConfigProperty>;
  required?: string[];
}

export interface ConfigState {
  schema: ConfigSchema;
  values: Record<string, unknown>;
}

export interface ModelInfo {
  id: string;
  provider: string;
  name: string;
  maxContextWindow?: number;
  supportsVision?: boolean;
  configSchema?: ConfigSchema;
  _meta?: Meta;
}

export interface ProtectedResource {
  resource: string;
  resource_name?: string;
  authorization_servers?: string[];
  scopes_supported?: string[];
  resource_documentation?: string;
  required?: boolean;
}

export interface AgentInfo {
  provider: string;
  displayName: string;
  description: string;
  models: ModelInfo[];
  protectedResources?: ProtectedResource[];
  customizations?: Customization[];
  capabilities?: {
    multipleChats?: { fork?: boolean; sideChat?: boolean };
    multipleWorkingDirectories?: { immutablePrimary?: boolean; primaryReplacement?: boolean };
  };
  _meta?: Meta;
}

export interface TerminalInfo {
  resource: Uri;
  title: string;
  claim: TerminalClaim;
  lifecycle: TerminalLifecycle;
}

export interface RootState {
  agents: AgentInfo[];
  activeSessions?: number;
  terminals?: TerminalInfo[];
  config?: ConfigState;
  _meta?: Meta;
}

// Sessions

export interface ChangesSummary {
  additions?: number;
  deletions?: number;
  files?: number;
}

export interface ChatOrigin {
  kind: string;
  chat?: Uri;
  turnId?: string;
  toolCallId?: string;
}

export interface ChatSummary {
  resource: Uri;
  title: string;
  status: number;
  activity?: string;
  modifiedAt: string;
  origin?: ChatOrigin;
  interactivity?: "full" | "read-only" | "hidden";
  workingDirectories?: Uri[];
  changes?: ChangesSummary;
  movable?: boolean;
}

export interface SessionSummary {
  resource: Uri;
  provider: string;
  title: string;
  status: number;
  activity?: string;
  project?: { uri: Uri; displayName: string };
  workingDirectories?: Uri[];
  createdAt: string;
  modifiedAt: string;
  changes?: ChangesSummary;
  chats?: (Partial<ChatSummary> & { resource: Uri; title: string })[];
  defaultChat?: Uri;
  _meta?: Meta;
}

export interface ToolDefinition {
  name: string;
  title?: string;
  description?: string;
}

export interface ActiveClient {
  clientId: string;
  displayName?: string;
  tools: ToolDefinition[];
  customizations?: Customization[];
}

export type InputNeeded =
  | { id: string; chat: Uri; kind: "chatInput"; request: InputRequest }
  | { id: string; chat: Uri; kind: "toolConfirmation"; turnId: string; toolCall: ToolCall }
  | { id: string; chat: Uri; kind: "toolClientExecution"; turnId: string; clientId: string; toolCall: ToolCall }
  | { id: string; chat: Uri; kind: "toolAuthentication"; turnId: string; toolCall: ToolCall };

export interface Enablement {
  kind: "session" | "workspace" | "global";
  uri?: Uri;
  enabled: boolean;
}

export interface Customization {
  type: string;
  id: string;
  uri: Uri;
  name: string;
  icons?: Icon[];
  _meta?: Meta;
  clientId?: string;
  load?: { kind: "loading" | "loaded" | "degraded" | "error"; message?: string };
  children?: Customization[];
  enablement?: Enablement[];
  enabled?: boolean;
  version?: string;
  contents?: string;
  writable?: boolean;
  description?: string;
  model?: string;
  tools?: string[];
  disableModelInvocation?: boolean;
  disableUserInvocation?: boolean;
  alwaysApply?: boolean;
  globs?: string[];
  state?: McpServerState;
  channel?: Uri;
}

export interface AuthRequirement {
  reason: "required" | "expired" | "insufficientScope";
  resource: ProtectedResource;
  requiredScopes?: string[];
  description?: string;
}

export type McpServerState =
  | { kind: "starting"; blocking?: boolean }
  | { kind: "ready" }
  | ({ kind: "authRequired" } & AuthRequirement)
  | { kind: "error"; error: ErrorInfo }
  | { kind: "stopped" };

export interface Changeset {
  label: string;
  uriTemplate: string;
  description?: string;
  changeKind: string;
  capabilities?: { review?: object };
}

export interface CanvasInstance {
  instanceId: string;
  extensionId?: string;
  extensionName?: string;
  canvasId: string;
  title?: string;
  status?: string;
  url?: string;
  availability?: string;
  renderer?: { clientId?: string };
  [field: string]: unknown;
}

export interface SessionState {
  provider: string;
  title: string;
  status: number;
  activity?: string;
  project?: { uri: Uri; displayName: string };
  workingDirectories?: Uri[];
  annotations?: { resource: Uri; annotationCount: number; entryCount: number };
  lifecycle: "creating" | "ready" | "failed";
  creationError?: ErrorInfo;
  serverTools?: ToolDefinition[];
  activeClients: ActiveClient[];
  chats: ChatSummary[];
  defaultChat?: Uri;
  config?: ConfigState;
  customizations?: Customization[];
  changesets?: Changeset[];
  inputNeeded?: InputNeeded[];
  canvasRegistry?: Record<string, unknown>[];
  openCanvases?: CanvasInstance[];
  canvasRequests?: Record<string, unknown>[];
  _meta?: Meta;
}

// Chats

export interface ModelSelection {
  id: string;
  config?: Record<string, unknown>;
}

export interface Attachment {
  type: string;
  label: string;
  displayKind?: string;
  uri?: Uri;
  data?: string;
  contentType?: string;
  resource?: Uri;
  annotationIds?: string[];
  modelRepresentation?: string;
  selection?: { range: TextRange };
  range?: TextRange;
  _meta?: Meta;
}

export interface Message {
  text: string;
  origin: { kind: string };
  attachments?: Attachment[];
  model?: ModelSelection;
  agent?: { uri: Uri };
  _meta?: Meta;
}

export interface PendingMessage {
  id: string;
  message: Message;
}

export interface InputOption {
  id: string;
  label: string;
  description?: string;
  recommended?: boolean;
}

export interface InputQuestion {
  id: string;
  kind: string;
  title?: string;
  message: string;
  required?: boolean;
  format?: string;
  min?: number;
  max?: number;
  defaultValue?: string | number | boolean;
  options?: InputOption[];
  allowFreeformInput?: boolean;
}

export type AnswerValue =
  | { kind: "text"; value: string }
  | { kind: "number"; value: number }
  | { kind: "boolean"; value: boolean }
  | { kind: "selected"; value: string; freeformValues?: string[] }
  | { kind: "selected-many"; value: string[]; freeformValues?: string[] };

export type InputAnswer =
  | { state: "draft" | "submitted"; value: AnswerValue }
  | { state: "skipped"; freeformValues?: string[] };

export interface InputRequest {
  id: string;
  message?: string;
  url?: Uri;
  questions?: InputQuestion[];
  answers?: Record<string, InputAnswer>;
}

export interface FileEdit {
  before?: { uri: Uri; content: ContentRef };
  after?: { uri: Uri; content: ContentRef };
  diff?: { added?: number; removed?: number };
}

export interface ConfirmationOption {
  id: string;
  label: string;
  kind: string;
  group?: number;
  description?: string;
  _meta?: Meta;
}

export type ToolContent =
  | { type: "text"; text: string }
  | { type: "embeddedResource"; data: string; contentType: string }
  | ({ type: "resource" } & ContentRef)
  | ({ type: "fileEdit" } & FileEdit)
  | {
      type: "terminal";
      resource: Uri;
      title: string;
      isPty?: boolean;
      result?: { exitCode?: number; preview?: string; truncated?: boolean };
    }
  | { type: "subagent"; resource: Uri; title: string; agentName?: string; description?: string };

export type ToolStatus =
  | "streaming"
  | "pending-confirmation"
  | "running"
  | "auth-required"
  | "pending-result-confirmation"
  | "completed"
  | "cancelled";

export interface ToolCall {
  status: ToolStatus;
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: { kind: string; clientId?: string; customizationId?: string };
  invocationMessage?: StringOrMarkdown;
  partialInput?: string;
  toolInput?: string | ContentRef;
  confirmationTitle?: StringOrMarkdown;
  riskAssessment?: { kind: string; status: string; reason?: StringOrMarkdown; safety?: number };
  edits?: { items: FileEdit[] };
  editable?: boolean;
  options?: ConfirmationOption[];
  confirmed?: string;
  selectedOption?: ConfirmationOption;
  content?: ToolContent[];
  structuredContent?: Record<string, unknown>;
  success?: boolean;
  pastTenseMessage?: StringOrMarkdown;
  error?: { message: string; code?: string };
  auth?: AuthRequirement;
  reason?: string;
  reasonMessage?: StringOrMarkdown;
  userSuggestion?: Message;
  _meta?: Meta;
}

export type ResponsePart =
  | { kind: "markdown"; id: string; content: string }
  | { kind: "reasoning"; id: string; content: string }
  | { kind: "toolCall"; toolCall: ToolCall }
  | { kind: "inputRequest"; request: InputRequest; response?: "accept" | "decline" | "cancel" }
  | { kind: "error"; error: ErrorInfo; resumable?: boolean }
  | { kind: "systemNotification"; content: StringOrMarkdown; _meta?: Meta }
  | ({ kind: "contentRef" } & ContentRef);

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  model?: string;
  _meta?: Meta;
}

export interface ActiveTurn {
  id: string;
  startedAt: string;
  message: Message;
  responseParts: ResponsePart[];
  usage?: Usage;
}

export interface Turn {
  id: string;
  startedAt?: string;
  duration?: number;
  message: Message;
  responseParts: ResponsePart[];
  usage?: Usage;
  state: "complete" | "cancelled" | "error";
}

export interface BackgroundWork {
  id: string;
  kind: string;
  label: string;
  startedAt: string;
  command?: string;
  terminal?: Uri;
  chat?: Uri;
}

export interface ChatState extends ChatSummary {
  turns: Turn[];
  turnsNextCursor?: string;
  activeTurn?: ActiveTurn;
  steeringMessage?: PendingMessage;
  queuedMessages?: PendingMessage[];
  draft?: Message;
  changesets?: Changeset[];
  backgroundWork?: BackgroundWork[];
  canvases?: { resource: Uri }[];
  _meta?: Meta;
}

// Terminals, changesets, annotations, canvases

export type TerminalLifecycle = { status: "running" } | { status: "exited"; exitCode?: number };

export interface TerminalClaim {
  kind: string;
  clientId?: string;
  session?: Uri;
  chat?: Uri;
}

export type TerminalPart =
  | { type: "unclassified"; value: string }
  | {
      type: "command";
      commandId: string;
      commandLine: string;
      output: string;
      timestamp: number;
      isComplete: boolean;
      exitCode?: number;
      durationMs?: number;
    };

export interface TerminalState {
  title: string;
  cwd?: Uri;
  cols?: number;
  rows?: number;
  content: TerminalPart[];
  lifecycle: TerminalLifecycle;
  claim: TerminalClaim;
  supportsCommandDetection?: boolean;
  isPty?: boolean;
}

export interface ChangesetFile {
  id: string;
  edit: FileEdit;
  reviewed?: boolean;
  _meta?: Meta;
}

export interface ChangesetOperation {
  id: string;
  label: string;
  description?: string;
  scopes: string[];
  confirmation?: StringOrMarkdown;
  icon?: string;
  group?: string;
  status: string;
  error?: ErrorInfo;
}

export interface ChangesetState {
  status: "computing" | "recomputing" | "ready" | "error";
  error?: ErrorInfo;
  files: ChangesetFile[];
  operations?: ChangesetOperation[];
}

export interface AnnotationEntry {
  id: string;
  text: StringOrMarkdown;
  _meta?: Meta;
}

export interface Annotation {
  id: string;
  origin: { session: Uri; chat?: Uri; turnId?: string };
  resource: Uri;
  range?: TextRange;
  resolved: boolean;
  entries: AnnotationEntry[];
  _meta?: Meta;
}

export interface AnnotationsState {
  annotations: Annotation[];
}

export interface CanvasState {
  instanceId: string;
  extensionId: string;
  extensionName?: string;
  canvasId: string;
  title?: string;
  status?: string;
  url?: string;
}

export interface InitializeResult {
  protocolVersion: string;
  serverSeq: number;
  serverInfo?: { name: string; version?: string; title?: string };
  snapshots: Snapshot[];
  defaultDirectory?: Uri;
  completionTriggerCharacters?: string[];
  terminalCommandPrefix?: string;
  _meta?: Meta;
}
