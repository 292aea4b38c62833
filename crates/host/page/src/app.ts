// The state of the page and everything that changes it. Views read it and call its functions; it knows no templates.

import { HostError, type Answer, type FolderTrust, type HostEvent, type HostRequest, type Me, type Message, type Mode, type Priority, type Session, type SessionState } from './contract'
import type { Frame } from './contract'
import { get, post, remove, request, upload } from './net/http'
import { Socket, type ServerMessage, type SocketState } from './net/socket'
import { notify } from './notify'
import { FIRST_EVENTS, SessionStore, type ModelChoice } from './session_store'
import { newKey, store, stored } from './storage'

export type Route =
  | { page: 'sessions' }
  | { page: 'session', id: string }
  | { page: 'inbox' | 'usage' | 'settings' | 'login' | 'missing' }

export type Dialog =
  | { kind: 'always', request: string, chosen: string }
  | { kind: 'bypass', session: string | null, folder: string, confirm: () => void }
  | { kind: 'rewind', session: string, to: string, files: boolean, conversation: boolean, changes: { path: string, change: string }[] | null, error: string | null }
  | { kind: 'delete', session: string }
  | { kind: 'rename', session: string }
  | { kind: 'shortcuts' }
  | { kind: 'device', link: string | null, error: string | null }
  | { kind: 'key', secret: string | null }

export interface Notice { id: number, text: string, action?: { label: string, run: () => void } }

/** What a person is about to answer with, by request: kept here so that drawing again loses nothing. */
export interface AnswerDraft { sending: boolean, error: string | null, editing: string | null, inputError: string | null }

const KEPT_SESSIONS = 6

/** Files above this size are not read for the diff of a card. */
const MAX_FILE_BYTES = 400_000

/** A message that is not confirmed after this time is shown as being sent. */
export const SHOW_SENDING_MS = 400

export class App {
  me: Me | null = null
  connection: SocketState = 'connecting'
  route: Route = { page: 'sessions' }
  readonly sessions = new Map<string, Session>()
  readonly requests = new Map<string, HostRequest>()
  readonly answers = new Map<string, AnswerDraft>()
  readonly stores = new Map<string, SessionStore>()
  /** Requests that were answered on this page since it was opened, newest first. */
  answeredHere: string[] = []
  dialog: Dialog | null = null
  notices: Notice[] = []
  announcement = ''
  sessionsLoaded = false
  requestsLoaded = false
  search = { words: '', folder: '', state: '' as SessionState | '', archived: false, results: null as Session[] | null, next: null as string | null, loading: false }
  /** Where the list of all sessions goes on. */
  nextSessions: string | null = null
  creating = { open: false, sending: false, error: null as string | null, folder: '', mode: 'default' as Mode, key: newKey(), suggestions: null as string[] | null, selected: -1 }
  private readonly socket: Socket
  private drawing = false
  private draw: () => void = () => {}
  private nextNotice = 1
  private retries: (() => void)[] = []

  constructor () {
    this.socket = new Socket({ state: state => this.connectionChanged(state), message: message => this.hear(message) })
  }

  // --- drawing

  onDraw (draw: () => void) {
    this.draw = draw
  }

  /** Draws once before the next frame, however often it is called. */
  changed () {
    if (this.drawing) return
    this.drawing = true
    const run = () => {
      this.drawing = false
      for (const session of this.stores.values()) session.settle()
      this.checkGaps()
      this.draw()
    }
    if (document.visibilityState === 'visible') requestAnimationFrame(run)
    else setTimeout(run, 150)
  }

  // --- start and connection

  async start () {
    this.navigate(location.pathname + location.hash, 'keep')
    const link = this.route.page === 'login' ? location.hash.slice(1) : ''
    if (location.hash && this.route.page === 'login') history.replaceState(null, '', '/login')
    try {
      this.me = await get<Me>('/v1/me')
    } catch {
      this.connection = 'connecting'
      this.changed()
      setTimeout(() => { void this.start() }, 2000)
      return
    }
    if (this.me.person) {
      if (this.route.page === 'login') this.navigate('/', 'replace')
      this.socket.connect()
    } else {
      this.connection = 'signed_out'
      if (link) await this.signIn(link).catch((error: unknown) => { this.loginError = messageOf(error) })
      else if (this.route.page !== 'login') this.navigate('/login', 'replace')
    }
    this.changed()
  }

  loginError: string | null = null

  async signIn (code: string) {
    this.loginError = null
    await post('/v1/login', { code: code.trim().replace(/^.*#/, ''), name: deviceName() })
    this.me = await get<Me>('/v1/me')
    this.socket.connect()
    this.navigate('/', 'replace')
  }

  async signOut () {
    await post('/v1/logout', {})
    this.socket.close()
    this.me = { person: null }
    location.assign('/login')
  }

  private connectionChanged (state: SocketState) {
    const before = this.connection
    this.connection = state
    for (const session of this.stores.values()) session.subscribed = state === 'connected' ? session.subscribed : false
    if (state === 'connected') this.connected()
    if (state === 'connecting' && before === 'connecting') void this.checkSignedIn()
    if (state === 'signed_out' && this.me?.person) {
      this.me = { person: null }
      this.navigate('/login', 'replace')
    }
    this.changed()
  }

  /** A refused handshake does not say why, so a connection that fails again asks who we are. */
  private async checkSignedIn () {
    if (!this.me?.person) return
    const me = await get<Me>('/v1/me').catch(() => null)
    if (me && !me.person) this.socket.close()
  }

  private connected () {
    const fail = (error: unknown) => this.fail(error)
    this.socket.call<{ requests?: HostRequest[] }>('watch', { what: 'requests' }).then(result => {
      for (const [id, known] of this.requests) if (known.state === 'open') this.requests.delete(id)
      for (const open of result.requests ?? []) this.requests.set(open.id, open)
      this.requestsLoaded = true
      this.changed()
    }).catch(fail)
    this.socket.call<{ sessions?: Session[], next?: string | null }>('watch', { what: 'sessions' }).then(result => {
      if (!this.sessionsLoaded) this.nextSessions = result.next ?? null
      for (const session of result.sessions ?? []) this.mergeSession(session)
      this.sessionsLoaded = true
      this.openRoute()
      this.changed()
    }).catch(fail)
    for (const session of this.stores.values()) if (session.conversation.last) void this.subscribe(session)
    const retries = this.retries
    this.retries = []
    for (const retry of retries) retry()
  }

  // --- messages of the server

  private hear (message: ServerMessage) {
    switch (message.op) {
      case 'event': {
        const event = message as unknown as HostEvent
        this.stores.get(event.session)?.hearEvent(event)
        break
      }
      case 'live':
        this.stores.get(String(message.session))?.hearLive(message.frame as Frame)
        break
      case 'resync': {
        const session = this.stores.get(String(message.session))
        if (!session) return
        session.resync()
        session.settle()
        session.subscribed = false
        this.subscribe(session).catch((error: unknown) => { session.error = messageOf(error); this.changed() })
        break
      }
      case 'session': this.mergeSession(message.session as Session); break
      case 'request': this.mergeRequest(message.request as HostRequest); break
      default: return
    }
    this.changed()
  }

  /** An older answer never replaces what is known of a session. */
  mergeSession (session: Session) {
    if (session.deleted) {
      this.sessions.delete(session.id)
      return
    }
    const known = this.sessions.get(session.id)
    if (known && known.touched_at > session.touched_at && known.head > session.head) return
    this.sessions.set(session.id, session)
  }

  private mergeRequest (request: HostRequest) {
    const known = this.requests.get(request.id)
    if (known && known.state !== 'open' && request.state === 'open') return
    this.requests.set(request.id, request)
    if (!known && request.state === 'open') {
      this.announcement = `${requestTitle(request)} in ${request.session_title || 'a session'}`
      const isWaiting = async () => this.requests.get(request.id)?.state === 'open' && !await this.isSeen()
      notify(requestTitle(request), request.session_title || request.folder, `/s/${request.session}`, isWaiting, path => this.navigate(path))
    }
  }

  /** Whether a person looks at a tab of ours, here or on another device. */
  private async isSeen (): Promise<boolean> {
    if (document.visibilityState === 'visible') return true
    const { visible } = await this.socket.call<{ visible?: number }>('visible', { on: false }).catch(() => ({ visible: 0 }))
    return Boolean(visible)
  }

  openRequests (): HostRequest[] {
    return [...this.requests.values()].filter(request => request.state === 'open').sort((a, b) => a.opened_at - b.opened_at)
  }

  // --- navigation

  navigate (path: string, how: 'push' | 'replace' | 'keep' = 'push') {
    if (how === 'push' && path !== location.pathname) history.pushState(null, '', path)
    if (how === 'replace') history.replaceState(null, '', path)
    this.route = parseRoute(path)
    this.dialog = null
    this.openRoute()
    this.changed()
  }

  private openRoute () {
    if (this.route.page === 'session' && this.connection === 'connected') void this.openSession(this.route.id)
  }

  currentStore (): SessionStore | null {
    return this.route.page === 'session' ? this.stores.get(this.route.id) ?? null : null
  }

  private async openSession (id: string) {
    let session = this.stores.get(id)
    if (!session) {
      session = new SessionStore(id)
      this.stores.set(id, session)
      this.dropOldStores(id)
    }
    if (session.subscribed) return
    try {
      if (!this.sessions.has(id)) this.mergeSession(await get<Session>(`/v1/sessions/${id}`))
      await this.subscribe(session)
      void this.loadModels(session)
    } catch (error) {
      if (!(error instanceof HostError && error.code === 'offline')) session.error = messageOf(error)
      this.changed()
    }
  }

  private dropOldStores (current: string) {
    for (const id of this.stores.keys()) {
      if (this.stores.size <= KEPT_SESSIONS) return
      if (id === current) continue
      this.stores.delete(id)
      this.socket.call('unsubscribe', { session: id }).catch(() => {})
    }
  }

  private async subscribe (session: SessionStore) {
    if (session.subscribed) return
    session.subscribed = true
    session.settle()
    const known = session.conversation.last
    const after = known || Math.max(0, (this.sessions.get(session.id)?.head ?? 0) - FIRST_EVENTS)
    session.resync()
    try {
      const result = await this.socket.call<{ session: Session, head: number, open: HostRequest[] }>('subscribe', { session: session.id, after })
      this.mergeSession(result.session)
      for (const open of result.open) this.mergeRequest(open)
      session.error = null
    } catch (error) {
      session.subscribed = false
      throw error
    }
    this.changed()
  }

  private checkGaps () {
    for (const session of this.stores.values()) {
      if (!session.conversation.gap || !session.subscribed) continue
      session.subscribed = false
      session.conversation = { ...session.conversation, gap: false }
      this.subscribe(session).catch(() => {})
    }
  }

  // --- sessions

  async createSession (text: string) {
    const creating = this.creating
    if (creating.sending) return
    creating.sending = true
    creating.error = null
    this.changed()
    try {
      const body: Record<string, unknown> = { folder: creating.folder, key: creating.key }
      if (creating.mode !== 'default') body.mode = creating.mode
      if (text.trim()) body.message = { key: `${creating.key}-1`, text }
      const session = await post<Session>('/v1/sessions', body)
      this.mergeSession(session)
      store('folder', creating.folder)
      store('draft:new', null)
      this.creating = { ...creating, open: false, sending: false, key: newKey() }
      this.navigate(`/s/${session.id}`)
    } catch (error) {
      creating.sending = false
      creating.error = messageOf(error)
    }
    this.changed()
  }

  async suggestFolders (typed: string) {
    const under = typed.slice(0, Math.max(0, typed.lastIndexOf('/')))
    try {
      const { folders } = await get<{ folders: { path: string }[] }>(`/v1/folders${under ? `?under=${encodeURIComponent(under)}` : ''}`)
      const roots = under ? [] : this.me?.roots ?? []
      const paths = [...new Set([...folders.map(folder => folder.path), ...roots])]
      this.creating.suggestions = paths.filter(path => path.toLowerCase().startsWith(typed.toLowerCase()) && path !== typed).slice(0, 12)
    } catch {
      this.creating.suggestions = []
    }
    this.creating.selected = -1
    this.changed()
  }

  async searchSessions () {
    const search = this.search
    if (!search.words && !search.archived && !search.folder && !search.state) {
      search.results = null
      return this.changed()
    }
    search.loading = true
    this.changed()
    const asked = this.searchQuery().toString()
    try {
      const result = await get<{ sessions: Session[], next: string | null }>(`/v1/sessions?${this.searchQuery()}`)
      if (asked !== this.searchQuery().toString()) return
      search.results = result.sessions
      search.next = result.next
    } catch (error) {
      this.fail(error)
    }
    search.loading = false
    this.changed()
  }

  private searchQuery (): URLSearchParams {
    const { words, folder, state, archived } = this.search
    const query = new URLSearchParams({ limit: '50' })
    if (words) query.set('words', words)
    if (folder) query.set('folder', folder)
    if (state) query.set('state', state)
    if (archived) query.set('archived', 'true')
    return query
  }

  /** Where the list or the search that is shown goes on; null at its end. */
  get nextPage (): string | null {
    return this.search.results ? this.search.next : this.nextSessions
  }

  /** Adds the next page of the list or of the search. */
  async moreSessions () {
    const query = this.searchQuery()
    if (!this.nextPage) return
    query.set('cursor', this.nextPage)
    await this.attempt(async () => {
      const result = await get<{ sessions: Session[], next: string | null }>(`/v1/sessions?${query}`)
      if (this.search.results) {
        this.search.results = [...this.search.results, ...result.sessions]
        this.search.next = result.next
      } else {
        for (const session of result.sessions) this.mergeSession(session)
        this.nextSessions = result.next
      }
    })
  }

  /** The sessions that are shown: those of the search as they are now, or all that are known. */
  shownSessions (): Session[] {
    const { results, state } = this.search
    if (!results) return [...this.sessions.values()].filter(session => !session.archived).sort((a, b) => b.touched_at - a.touched_at)
    const current = results.map(found => ({ ...found, ...this.sessions.get(found.id), hits: found.hits }))
    return state ? current.filter(session => session.state === state) : current
  }

  async patchSession (id: string, change: { title?: string, archived?: boolean }) {
    await this.attempt(async () => {
      const session = await request<Session>('PATCH', `/v1/sessions/${id}`, change)
      this.sessions.set(id, session)
      if (this.search.results) {
        this.search.results = this.search.results.filter(found => found.id !== id || found.archived === session.archived).map(found => found.id === id ? { ...found, ...session } : found)
      }
      if (change.archived) this.say('Archived.', { label: 'Undo', run: () => { void this.patchSession(id, { archived: false }) } })
    })
  }

  async deleteSession (id: string) {
    await this.attempt(async () => {
      await remove(`/v1/sessions/${id}`)
      this.sessions.delete(id)
      this.stores.delete(id)
      if (this.search.results) this.search.results = this.search.results.filter(found => found.id !== id)
      if (this.route.page === 'session' && this.route.id === id) this.navigate('/', 'replace')
    })
  }

  async fork (id: string, at: string | null) {
    await this.attempt(async () => {
      const body: Record<string, unknown> = { key: newKey() }
      if (at) body.at = at
      const session = await post<Session>(`/v1/sessions/${id}/fork`, body)
      this.mergeSession(session)
      this.navigate(`/s/${session.id}`)
      this.say('This is the fork. The first session is unchanged.')
    })
  }

  async rewind (id: string, to: string, files: boolean, conversation: boolean, dryRun: boolean) {
    return await post<{ files: { path: string, change: string }[], session: Session, undo?: string }>(`/v1/sessions/${id}/rewind`, { to, files, conversation, dry_run: dryRun })
  }

  async continueSession (id: string) {
    await this.attempt(() => post(`/v1/sessions/${id}/continue`, {}))
  }

  private readonly trusts = new Map<string, FolderTrust | null>()

  /** What trust in a folder adds, asked for once; null until it is known. */
  trustOf (folder: string): FolderTrust | null {
    const known = this.trusts.get(folder)
    if (known !== undefined) return known
    this.trusts.set(folder, null)
    get<FolderTrust>(`/v1/folders/trust?folder=${encodeURIComponent(folder)}`).then(trust => { this.trusts.set(folder, trust); this.changed() }, () => {})
    return null
  }

  /** What a card shows of trust; it is drawn again when this changes. */
  trustVersion (folder: string): string {
    return JSON.stringify(this.trusts.get(folder) ?? null)
  }

  async setTrust (folder: string, trusted: boolean) {
    await this.attempt(async () => {
      await request('PUT', '/v1/folders/trust', { folder, trusted })
      this.trusts.delete(folder)
      for (const session of this.sessions.values()) if (session.folder === folder) this.sessions.set(session.id, { ...session, trusted })
      this.say(trusted ? 'This folder is trusted. Its own settings count from the next start of a session on.' : 'This folder is no longer trusted. Its own settings end with the session that runs.')
    })
  }

  // --- messages

  async send (session: SessionStore, text: string, priority: Priority) {
    const message = session.compose(text, priority)
    session.outgoing = [...session.outgoing, { message, text, at: Date.now(), error: null }]
    setTimeout(() => this.changed(), SHOW_SENDING_MS)
    session.attachments = []
    session.end = null
    session.start = null
    this.changed()
    await this.deliver(session, message)
  }

  private async deliver (session: SessionStore, message: Message) {
    try {
      await this.socket.call('send', { session: session.id, ...message })
      session.acknowledge(message.key)
      if (stored(`draft:${session.id}`) === message.text) session.saveDraft('')
    } catch (error) {
      if (error instanceof HostError && error.code === 'offline') {
        this.retries.push(() => { void this.deliver(session, message) })
      } else {
        session.outgoing = session.outgoing.map(outgoing => outgoing.message === message ? { ...outgoing, error: messageOf(error) } : outgoing)
      }
    }
    this.changed()
  }

  async takeBack (session: SessionStore, uuid: string) {
    const queued = session.conversation.queue.find(queued => queued.uuid === uuid)
    await this.attempt(async () => {
      await this.socket.call('take_back', { session: session.id, uuid })
      if (queued && !stored(`draft:${session.id}`)) session.draftToSet = queued.text
    })
  }

  async attach (session: SessionStore, files: Iterable<File>) {
    await Promise.all([...files].map(async file => {
      const key = newKey()
      const preview = file.type.startsWith('image/') && file.type !== 'image/svg+xml' ? URL.createObjectURL(file) : null
      session.attachments = [...session.attachments, { key, name: file.name || 'picture.png', size: file.size, preview, upload: null, error: null }]
      this.changed()
      const set = (change: object) => {
        session.attachments = session.attachments.map(attachment => attachment.key === key ? { ...attachment, ...change } : attachment)
        this.changed()
      }
      try {
        set({ upload: await upload(file) })
      } catch (error) {
        set({ error: messageOf(error) })
      }
    }))
  }

  // --- control

  control<T> (session: string, request: Record<string, unknown>): Promise<T> {
    return this.socket.call<T>('control', { session, request })
  }

  async interrupt (session: SessionStore) {
    session.stopAsked = true
    this.changed()
    try {
      await this.control(session.id, { subtype: 'interrupt' })
    } catch (error) {
      session.stopAsked = false
      if (!(error instanceof HostError && error.code === 'not_running')) this.fail(error)
    }
  }

  setMode (session: Session, mode: Mode) {
    const apply = () => {
      this.dialog = null
      void this.attempt(() => this.control(session.id, { subtype: 'set_permission_mode', mode }))
    }
    if (mode === 'bypassPermissions') this.openDialog({ kind: 'bypass', session: session.id, folder: session.folder, confirm: apply })
    else apply()
  }

  async setModel (session: Session, model: string) {
    await this.attempt(() => this.control(session.id, { subtype: 'set_model', model }))
  }

  private async loadModels (session: SessionStore) {
    const state = this.sessions.get(session.id)?.state
    if (session.models.length || state === 'elsewhere') return
    try {
      const { models } = await this.control<{ models: ModelChoice[] }>(session.id, { subtype: 'list_models' })
      session.models = models
      this.changed()
    } catch {
      // Without the list the select has the model of the session only.
    }
  }

  async loadContext (session: SessionStore) {
    await this.attempt(async () => {
      session.context = await this.control(session.id, { subtype: 'get_context_usage' })
    })
  }

  // --- requests

  async answer (id: string, answer: Answer) {
    const draft = this.answerDraft(id)
    if (draft.sending) return
    this.setDraft(id, { sending: true, error: null })
    const attempt = async (): Promise<void> => {
      try {
        const request = await this.socket.call<HostRequest>('answer', { request: id, ...answer })
        this.answered(id, request)
      } catch (error) {
        if (!(error instanceof HostError)) throw error
        if (error.code === 'offline') {
          this.retries.push(() => { void attempt() })
          this.setDraft(id, { error: 'Sending… The connection is being restored.' })
        } else if (error.code === 'already_answered') {
          this.answered(id, error.detail.request as HostRequest | undefined)
        } else {
          this.setDraft(id, { sending: false, error: error.message, inputError: error.code === 'bad_input' ? error.message : null })
        }
      }
      this.changed()
    }
    await attempt()
  }

  private readonly files = new Map<string, string | null>()

  fileVersion (id: string): number {
    return this.files.get(id)?.length ?? -1
  }

  /** The file that a waiting call would edit, read once by the engine; null until it is there or if it cannot be read. */
  fileOf (request: HostRequest): string | null {
    const known = this.files.get(request.id)
    if (known !== undefined) return known
    this.files.set(request.id, null)
    const path = request.request.input.file_path
    if (typeof path !== 'string') return null
    this.control<{ contents: string, truncated?: boolean }>(request.session, { subtype: 'read_file', path, max_bytes: MAX_FILE_BYTES }).then(({ contents, truncated }) => {
      if (truncated) return
      this.files.set(request.id, contents)
      this.changed()
    }, () => {})
    return null
  }

  private answered (id: string, request: HostRequest | undefined) {
    if (request?.id) this.mergeRequest(request)
    this.answers.delete(id)
    this.answeredHere = [id, ...this.answeredHere.filter(other => other !== id)].slice(0, 20)
  }

  answerDraft (id: string): AnswerDraft {
    return this.answers.get(id) ?? { sending: false, error: null, editing: null, inputError: null }
  }

  setDraft (id: string, change: Partial<AnswerDraft>) {
    this.answers.set(id, { ...this.answerDraft(id), ...change })
    this.changed()
  }

  // --- notices and dialogs

  openDialog (dialog: Dialog) {
    this.dialog = dialog
    this.changed()
  }

  closeDialog () {
    this.dialog = null
    this.changed()
  }

  say (text: string, action?: Notice['action']) {
    const notice: Notice = { id: this.nextNotice++, text, action }
    this.notices = [...this.notices.slice(-2), notice]
    this.changed()
    setTimeout(() => this.dismiss(notice.id), action ? 12_000 : 7000)
  }

  dismiss (id: number) {
    this.notices = this.notices.filter(notice => notice.id !== id)
    this.changed()
  }

  fail (error: unknown) {
    if (error instanceof HostError && error.code === 'offline' && this.connection !== 'connected') return
    this.say(messageOf(error))
  }

  private async attempt (work: () => Promise<unknown>) {
    try {
      await work()
    } catch (error) {
      this.fail(error)
    }
    this.changed()
  }
}

export function parseRoute (path: string): Route {
  const [pathname = '/'] = path.split(/[?#]/)
  const session = /^\/s\/([^/]+)\/?$/.exec(pathname)
  if (session?.[1]) return { page: 'session', id: session[1] }
  switch (pathname) {
    case '/': return { page: 'sessions' }
    case '/inbox': case '/usage': case '/settings': case '/login': return { page: pathname.slice(1) as 'inbox' }
    default: return { page: 'missing' }
  }
}

export function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function requestTitle (request: { kind: string, request: { tool_name?: string, mcp_server_name?: string } }): string {
  switch (request.kind) {
    case 'question': return 'Question'
    case 'plan': return 'Plan'
    case 'elicitation': return `Question of ${request.request.mcp_server_name ?? 'a server'}`
    default: return `Permission request: ${request.request.tool_name ?? ''}`
  }
}

function deviceName (): string {
  const agent = navigator.userAgent
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(agent)?.[0] ?? 'device'
  const browser = /Firefox|Edg|Chrome|Safari/.exec(agent)?.[0]?.replace('Edg', 'Edge') ?? 'Browser'
  return `${browser} on ${system}`
}

