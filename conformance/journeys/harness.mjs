// Starts a host on a scripted model in folders of its own, and browsers that fail on whatever a person should never meet:
// console errors, violations of the content security policy, and requests to other hosts.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ScriptedModel } from './model.mjs'

const require = createRequire(join(process.env.JOURNEY_MODULES ?? '.', 'x.js'))
const { chromium } = require('playwright-core')
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

/** Time that a person would wait before something counts as broken. The machine may be busy. */
export const PATIENCE = Number(process.env.JOURNEY_PATIENCE_MS ?? 30_000)

const BROWSER_FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

export const DESKTOP = { viewport: { width: 1280, height: 800 } }
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

let browser
after(() => browser?.close())

async function launch () {
  browser ??= await chromium.launch({ executablePath: executable(process.env.CHROMIUM ?? 'chromium'), args: BROWSER_FLAGS })
  return browser
}

function executable (name) {
  if (name.includes('/')) return name
  const found = process.env.PATH.split(':').map(dir => join(dir, name)).find(path => existsSync(path))
  assert.ok(found, `${name} is not installed`)
  return found
}

/** Plays a journey with a host of its own, at the desktop and, if `phone`, on a phone too. */
export function journey (name, options, play) {
  const devices = options.phone ? { desktop: DESKTOP, phone: PHONE } : { desktop: DESKTOP }
  for (const [device, context] of Object.entries(devices)) {
    test(options.phone ? `${name} (${device})` : name, { timeout: 8 * PATIENCE }, async () => {
      const world = await World.start(options, context)
      try {
        await play(world)
        await world.checkPages()
      } catch (error) {
        error.message += world.report()
        await world.picture(name)
        throw error
      } finally {
        await world.stop()
      }
    })
  }
}

export class World {
  static async start (options, device) {
    const world = new World()
    world.device = device
    world.options = options
    world.dir = realpathSync(mkdtempSync(join(tmpdir(), 'whimbrel-journey-')))
    world.home = join(world.dir, 'home')
    world.project = join(world.dir, 'project')
    for (const dir of [world.home, world.project]) mkdirSync(dir)
    world.model = await new ScriptedModel().start()
    world.problems = []
    world.contexts = []
    world.pages = []
    if (options.prepare) await options.prepare(world)
    await world.startHost()
    return world
  }

  async startHost () {
    const args = ['serve', '--json', '--listen', this.address ?? '127.0.0.1:0', '--data', join(this.dir, 'data'), '--root', this.project, '--token-file', join(this.dir, 'token'), ...(process.env.JOURNEY_PAGE ? ['--page', process.env.JOURNEY_PAGE] : []), ...(this.options.configFile ? ['--config', join(this.dir, 'config.json')] : []), ...(this.options.flags ?? [])]
    this.host = spawn(process.env.WHIMBREL, args, {
      cwd: this.project,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, HOME: this.home, ANTHROPIC_BASE_URL: this.model.url, ANTHROPIC_API_KEY: 'test-key', TMPDIR: tmpdir(), NO_PROXY: '127.0.0.1', IS_SANDBOX: '1', ...this.options.environment }
    })
    this.log = ''
    this.host.stderr.on('data', data => { this.log += data })
    const ended = new Promise(resolve => this.host.once('exit', resolve))
    this.hostEnded = ended
    const ready = await new Promise((resolve, reject) => {
      let out = ''
      this.host.stdout.on('data', data => {
        out += data
        if (out.includes('\n')) resolve(JSON.parse(out.split('\n')[0]))
      })
      void ended.then(code => reject(new Error(`the host ended with ${code}: ${this.log}`)))
    })
    this.url = ready.url
    this.address = new URL(ready.url).host
    this.login = ready.login
    this.token = readFileSync(join(this.dir, 'token'), 'utf8').trim()
  }

  async stopHost (signal = 'SIGTERM') {
    if (this.host.exitCode === null && this.host.signalCode === null) this.host.kill(signal)
    await this.hostEnded
  }

  async stop () {
    for (const context of this.contexts) await context.close().catch(() => {})
    await this.stopHost('SIGKILL')
    this.model.stop()
    // Processes of the killed host may still write while they end.
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  report () {
    return `\nproblems: ${JSON.stringify(this.problems)}\nhost: ${this.log.slice(-2000)}\npages: ${this.pages.map(page => page.url()).join(' ')}`
  }

  /** Pictures of a failed journey, if a folder for them is named. */
  async picture (name) {
    const dir = process.env.JOURNEY_PICTURES
    if (!dir) return
    for (const [index, page] of this.pages.entries()) if (!page.isClosed()) await page.screenshot({ path: join(dir, `${name.slice(0, 20)}-${index}.png`) })
  }

  // --- browsers

  /** A browser of its own, signed in unless told otherwise. */
  async open (path = '/', { device = this.device, signIn = true, options = {} } = {}) {
    const context = await (await launch()).newContext({ ...device, ...options, permissions: ['clipboard-read', 'clipboard-write'] })
    context.setDefaultTimeout(PATIENCE)
    this.contexts.push(context)
    if (signIn) {
      const { secret } = await this.api('POST', '/v1/tokens', { kind: 'code' })
      const reply = await context.request.post(`${this.url}/v1/login`, { data: { code: secret, name: 'test' }, headers: { Origin: this.url } })
      assert.equal(reply.status(), 204)
    }
    return await this.tab(context, path)
  }

  async tab (context, path) {
    const page = await context.newPage()
    this.pages.push(page)
    page.on('console', message => {
      const text = message.text()
      if (message.type() === 'error' && !this.expected(text)) this.problems.push(text)
    })
    page.on('pageerror', error => this.problems.push(`error: ${error.message}`))
    page.on('request', request => {
      const url = request.url()
      if (!url.startsWith(this.url) && !url.startsWith('data:') && !url.startsWith('blob:')) this.problems.push(`request to ${url}`)
    })
    await page.goto(path.startsWith('http') ? path : `${this.url}${path}`)
    return page
  }

  /** Errors of the console that a journey brings about itself. */
  expected (text) {
    return (this.expectedErrors ?? []).some(pattern => pattern.test(text))
  }

  async checkPages () {
    assert.deepEqual(this.problems, [])
    for (const page of this.pages) if (!page.isClosed()) await this.axe(page)
    assert.deepEqual(this.problems, [])
  }

  /** The page's own policy forbids scripts of others, so axe is put in by the debugger. */
  async axe (page) {
    await eventually(page, () => page.evaluate(isStill), 'the page is still')
    const client = await page.context().newCDPSession(page)
    const expression = `${AXE};axe.run().then(result => JSON.stringify(result.violations.map(found => found.id + ': ' + found.nodes.map(node => node.target.join(' ')).slice(0, 4).join(' | '))))`
    const { result } = await client.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    assert.deepEqual(JSON.parse(result.value), [])
    await eventually(page, () => page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'the page does not scroll sideways')
  }

  // --- the API

  async fetch (method, path, body, headers = {}) {
    return await fetch(`${this.url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body)
    })
  }

  async api (method, path, body) {
    const reply = await this.fetch(method, path, body)
    const text = await reply.text()
    assert.ok(reply.ok, `${method} ${path}: ${reply.status} ${text}`)
    return text ? JSON.parse(text) : null
  }

  /** Starts a session over the API. */
  async session (text, fields = {}) {
    const body = { folder: this.project, key: crypto.randomUUID(), ...fields }
    if (text !== null) body.message = { key: crypto.randomUUID(), text }
    return await this.api('POST', '/v1/sessions', body)
  }

  async events (id) {
    const events = []
    for (;;) {
      const { events: page, head } = await this.api('GET', `/v1/sessions/${id}/events?after=${events.length}&limit=200`)
      events.push(...page)
      if (!page.length || events.length >= head) return events
    }
  }

  /** Waits until a condition over the events of a session holds. */
  async until (id, condition) {
    let after = 0
    const deadline = Date.now() + PATIENCE
    const events = []
    while (Date.now() < deadline) {
      const { events: page } = await this.api('GET', `/v1/sessions/${id}/events?after=${after}&limit=200&wait=5`)
      for (const event of page) {
        after = event.seq
        events.push(event)
        if (condition(event.frame, events)) return event
      }
    }
    throw new Error(`it never came; the last events: ${JSON.stringify(events.slice(-6).map(event => event.frame)).slice(0, 3000)}`)
  }

  resting (id) {
    return this.until(id, (frame, events) => frame.type === 'host' && frame.subtype === 'state' && frame.state === 'resting' && events.some(event => event.frame.type === 'result'))
  }

  file (name) {
    return readFileSync(join(this.project, name), 'utf8')
  }

  exists (name) {
    return existsSync(join(this.project, name))
  }
}

// --- what a person does

/** Writes a message and sends it. */
export async function send (page, text) {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** The open card for a tool. */
export function card (page, tool) {
  return page.getByRole('region', { name: `Permission request: ${tool}` })
}

export async function see (locator) {
  await locator.first().waitFor({ state: 'visible' })
}

export async function gone (locator) {
  for (let count = await locator.count(); count > 0; count = await locator.count()) await locator.first().waitFor({ state: 'hidden' })
}

/** Waits until a condition holds; it is asked again with each frame of the page. An error counts as not yet. */
export async function eventually (page, condition, what) {
  const deadline = Date.now() + PATIENCE
  let last = ''
  while (Date.now() < deadline) {
    try {
      if (await condition()) return
      last = ''
    } catch (error) {
      last = `: ${error.message}`
    }
    await page.evaluate(() => new Promise(resolve => requestAnimationFrame(resolve)))
  }
  throw new Error(`it never happened: ${what}${last}`)
}

/** Waits until a value of the page equals an expected one: what an action changes may arrive later than its answer. */
export async function becomes (page, read, expected) {
  await eventually(page, async () => { assert.deepEqual(await read(), expected); return true }, `it becomes ${JSON.stringify(expected)}`)
}

/** Whether no transition runs: colors in between have other contrasts. Runs in the page. */
function isStill () {
  return document.getAnimations().every(animation => animation.playState !== 'running' || animation.effect?.getComputedTiming().endTime === Infinity)
}

export const log = page => page.getByRole('log', { name: 'Conversation' })
