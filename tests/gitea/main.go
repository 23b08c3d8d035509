// The Git host through Gitea's own client library: what it sends, and what it makes of the answers.
//
// It is given the address and a token, and calls a receiver of webhooks that it starts itself. It ends with an error at the
// first thing that is not as it should be.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

const owner, name, secret = "root", "sdk", "s3cret"

var checks int

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func check(good bool, format string, values ...any) {
	checks++
	if !good {
		must(fmt.Errorf("not as it should be"), fmt.Sprintf(format, values...))
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

type delivery struct {
	event   string
	payload map[string]any
}

// receive starts a receiver of webhooks that believes signed ones only.
func receive() (string, chan delivery) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err, "listen")
	seen := make(chan delivery, 100)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		payload := map[string]any{}
		if json.Unmarshal(body, &payload) == nil {
			seen <- delivery{request.Header.Get("X-Gitea-Event"), payload}
		}
	})
	go func() { _ = http.Serve(listener, gitea.VerifyWebhookSignatureMiddleware(secret)(handler)) }()
	return "http://" + listener.Addr().String() + "/", seen
}

// early are deliveries that nobody has asked for yet: those of two events may overtake each other.
var early []delivery

func expect(seen chan delivery, event string) map[string]any {
	for i, one := range early {
		if one.event == event {
			early = append(early[:i], early[i+1:]...)
			return one.payload
		}
	}
	deadline := time.After(30 * time.Second)
	for {
		select {
		case one := <-seen:
			if one.event == event {
				return one.payload
			}
			early = append(early, one)
		case <-deadline:
			must(fmt.Errorf("it did not come"), "webhook "+event)
		}
	}
}

func client(address, authority string, options ...gitea.ClientOption) *gitea.Client {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(authority)
	must(err, "read the certificate authority")
	pool.AppendCertsFromPEM(pem)
	// Not every resolver knows that names below localhost are this machine.
	port := address[strings.LastIndex(address, ":"):]
	dial := func(network, _ string) (net.Conn, error) { return net.Dial(network, "127.0.0.1"+port) }
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Dial: dial}
	options = append(options, gitea.SetHTTPClient(&http.Client{Transport: transport, Timeout: 30 * time.Second}))
	made, err := gitea.NewClient(address, options...)
	must(err, "make a client")
	return made
}

func main() {
	address, authority, word := os.Args[1], os.Args[2], os.Args[3]
	c := client(address, authority, gitea.SetToken(word))
	me, _, err := c.GetMyUserInfo()
	must(err, "user")
	check(me.UserName == "sdk-tester", "user %+v", me)
	_, _, err = c.GetOrg(owner)
	must(err, "organisation")

	repo, _, err := c.CreateOrgRepo(owner, gitea.CreateRepoOption{Name: name, Description: "d", Private: true, DefaultBranch: "main"})
	must(err, "create a repository")
	check(repo.FullName == owner+"/"+name && repo.Private && repo.Empty && repo.Permissions.Admin, "repository %+v", repo)
	_, answer, err := c.CreateOrgRepo(owner, gitea.CreateRepoOption{Name: name})
	check(err != nil && answer.StatusCode == 409, "a second repository: %v", err)

	url, seen := receive()
	hook, _, err := c.CreateRepoHook(owner, name, gitea.CreateHookOption{
		Type: gitea.HookTypeGitea, Active: true, Events: []string{"push", "create", "delete", "pull_request"},
		Config: map[string]string{"url": url, "content_type": "json", "secret": secret},
	})
	must(err, "create a hook")
	check(hook.ID > 0 && hook.Active && hook.Config["url"] == url && !hook.Created.IsZero(), "hook %+v", hook)

	file, _, err := c.CreateFile(owner, name, "a/b.yaml", gitea.CreateFileOptions{
		FileOptions: gitea.FileOptions{Message: "first", Author: gitea.Identity{Name: "A", Email: "a@example.com"}}, Content: encoded("one\n"),
	})
	must(err, "create a file")
	check(file.Commit.Message == "first" && file.Commit.Author.Name == "A" && file.Commit.SHA != "", "commit %+v", file.Commit)
	check(file.Content.Path == "a/b.yaml" && *file.Content.Content == encoded("one\n"), "content %+v", file.Content)
	check(expect(seen, "create")["ref"] == "main", "create event")
	pushed := expect(seen, "push")
	check(pushed["ref"] == "refs/heads/main" && pushed["after"] == file.Commit.SHA, "push event %v", pushed)

	_, _, err = c.CreateBranch(owner, name, gitea.CreateBranchOption{BranchName: "work", OldBranchName: "main"})
	must(err, "create a branch")
	updated, _, err := c.UpdateFile(owner, name, "a/b.yaml", gitea.UpdateFileOptions{
		FileOptions: gitea.FileOptions{BranchName: "work", Message: "second"}, SHA: file.Content.SHA, Content: encoded("two\n"),
	})
	must(err, "update a file")
	bytes, _, err := c.GetFile(owner, name, "work", "a/b.yaml")
	must(err, "read a file")
	check(string(bytes) == "two\n", "file %q", bytes)
	listed, _, err := c.ListContents(owner, name, "work", "a")
	must(err, "list a directory")
	check(len(listed) == 1 && listed[0].Name == "b.yaml", "directory %+v", listed)
	branch, _, err := c.GetRepoBranch(owner, name, "work")
	must(err, "branch")
	check(branch.Commit.ID == updated.Commit.SHA && !branch.Commit.Timestamp.IsZero(), "branch %+v", branch)
	commits, _, err := c.ListRepoCommits(owner, name, gitea.ListCommitOptions{SHA: "work", Files: true})
	must(err, "commits")
	check(len(commits) == 2 && commits[0].RepoCommit.Message == "second" && commits[0].Files[0].Filename == "a/b.yaml", "commits %+v", commits)
	compared, _, err := c.CompareCommits(owner, name, "main", "work")
	must(err, "compare")
	check(compared.TotalCommits == 1 && compared.Commits[0].SHA == updated.Commit.SHA, "comparison %+v", compared)

	status, _, err := c.CreateStatus(owner, name, updated.Commit.SHA, gitea.CreateStatusOption{State: gitea.StatusSuccess, Context: "ci", TargetURL: "https://ci.example.com"})
	must(err, "create a status")
	check(status.State == gitea.StatusSuccess && status.Creator.UserName == "sdk-tester", "status %+v", status)
	combined, _, err := c.GetCombinedStatus(owner, name, "work")
	must(err, "combined status")
	check(combined.State == gitea.StatusSuccess && combined.TotalCount == 1 && combined.Repository.Name == name, "combined %+v", combined)
	statuses, _, err := c.ListStatuses(owner, name, "work", gitea.ListStatusesOption{})
	must(err, "statuses")
	check(len(statuses) == 1, "statuses %+v", statuses)

	protection, _, err := c.CreateBranchProtection(owner, name, gitea.CreateBranchProtectionOption{RuleName: "main"})
	must(err, "protect a branch")
	check(protection.RuleName == "main" && !protection.EnablePush, "protection %+v", protection)
	_, answer, err = c.CreateFile(owner, name, "c", gitea.CreateFileOptions{FileOptions: gitea.FileOptions{Message: "no"}, Content: encoded("no")})
	check(err != nil && answer.StatusCode == 403, "a commit on a protected branch: %v", err)

	label, _, err := c.CreateLabel(owner, name, gitea.CreateLabelOption{Name: "preview", Color: "#00aabb", Description: "d"})
	must(err, "create a label")
	check(label.ID > 0 && label.Name == "preview" && label.Color == "00aabb", "label %+v", label)
	spare, _, err := c.CreateLabel(owner, name, gitea.CreateLabelOption{Name: "spare", Color: "#000000"})
	must(err, "create another label")
	renamed := "spare2"
	spare, _, err = c.EditLabel(owner, name, spare.ID, gitea.EditLabelOption{Name: &renamed})
	must(err, "edit a label")
	check(spare.Name == renamed, "label %+v", spare)
	labels, _, err := c.ListRepoLabels(owner, name, gitea.ListLabelsOptions{})
	must(err, "labels")
	check(len(labels) == 2, "labels %+v", labels)

	for _, style := range []gitea.MergeStyle{gitea.MergeStyleMerge, gitea.MergeStyleSquash, gitea.MergeStyleRebase, gitea.MergeStyleRebaseMerge} {
		head := "work"
		if style != gitea.MergeStyleMerge {
			head = "work-" + string(style)
			_, _, err = c.CreateFile(owner, name, string(style), gitea.CreateFileOptions{
				FileOptions: gitea.FileOptions{NewBranchName: head, BranchName: "main", Message: "add " + string(style)}, Content: encoded(string(style)),
			})
			must(err, "a branch for "+string(style))
		}
		pull, _, err := c.CreatePullRequest(owner, name, gitea.CreatePullRequestOption{Head: head, Base: "main", Title: "Pull " + head, Body: "please", Labels: []int64{label.ID}})
		must(err, "create a pull request")
		check(pull.State == gitea.StateOpen && pull.Mergeable && pull.Head.Ref == head && pull.Base.Repository.Name == name, "pull %+v", pull)
		opened := expect(seen, "pull_request")
		check(opened["action"] == "opened", "pull request event %v", opened["action"])
		check(len(pull.Labels) == 1 && pull.Labels[0].Name == "preview", "labels of a pull request %+v", pull.Labels)
		added, _, err := c.AddIssueLabels(owner, name, pull.Index, gitea.IssueLabelsOption{Labels: []int64{spare.ID}})
		must(err, "add a label")
		check(len(added) == 2, "labels %+v", added)
		labelled := expect(seen, "pull_request")
		check(labelled["action"] == "label_updated", "label event %v", labelled["action"])
		_, err = c.DeleteIssueLabel(owner, name, pull.Index, spare.ID)
		must(err, "remove a label")
		left, _, err := c.GetIssueLabels(owner, name, pull.Index, gitea.ListLabelsOptions{})
		must(err, "labels of a pull request")
		check(len(left) == 1 && left[0].ID == label.ID, "labels %+v", left)
		expect(seen, "pull_request")
		diff, _, err := c.GetPullRequestDiff(owner, name, pull.Index, gitea.PullRequestDiffOptions{})
		must(err, "diff")
		check(strings.Contains(string(diff), "diff --git"), "diff %s", diff)
		files, _, err := c.ListPullRequestFiles(owner, name, pull.Index, gitea.ListPullRequestFilesOptions{})
		must(err, "files")
		check(len(files) == 1, "files %+v", files)
		comment, _, err := c.CreateIssueComment(owner, name, pull.Index, gitea.CreateIssueCommentOption{Body: "looks good"})
		must(err, "comment")
		check(comment.Body == "looks good" && comment.Poster.UserName == "sdk-tester", "comment %+v", comment)
		check(expect(seen, "issue_comment")["is_pull"] == true, "comment event")
		merged, _, err := c.MergePullRequest(owner, name, pull.Index, gitea.MergePullRequestOption{Style: style, Title: "T", DeleteBranchAfterMerge: true})
		must(err, "merge by "+string(style))
		check(merged, "merge by %s", style)
		closed := expect(seen, "pull_request")
		check(closed["action"] == "closed", "pull request event %v", closed["action"])
		is, _, err := c.IsPullRequestMerged(owner, name, pull.Index)
		must(err, "is it merged")
		check(is, "it is not merged")
		again, _, err := c.GetPullRequest(owner, name, pull.Index)
		must(err, "get a pull request")
		check(again.HasMerged && again.MergedBy.UserName == "sdk-tester" && again.MergedCommitID != nil, "merged %+v", again)
		expect(seen, "delete")
	}
	comments, _, err := c.ListIssueComments(owner, name, 1, gitea.ListIssueCommentOptions{})
	must(err, "comments")
	people := 0
	for _, one := range comments {
		// The other is the host's own: what a merge would change.
		if one.Poster.UserName == "sdk-tester" {
			people++
		}
	}
	check(people == 1, "%d comments, %d of people", len(comments), people)
	pulls, _, err := c.ListRepoPullRequests(owner, name, gitea.ListPullRequestsOptions{State: gitea.StateClosed})
	must(err, "pull requests")
	check(len(pulls) == 4, "%d pull requests", len(pulls))

	_, err = c.EditRepoHook(owner, name, hook.ID, gitea.EditHookOption{Events: []string{"push"}, Active: new(bool)})
	must(err, "edit a hook")
	hooks, _, err := c.ListRepoHooks(owner, name, gitea.ListHooksOptions{})
	must(err, "hooks")
	check(len(hooks) == 1 && !hooks[0].Active && len(hooks[0].Events) == 1, "hooks %+v", hooks[0])
	_, err = c.DeleteRepoHook(owner, name, hook.ID)
	must(err, "delete a hook")

	tag, _, err := c.CreateTag(owner, name, gitea.CreateTagOption{TagName: "v1", Message: "one", Target: "main"})
	must(err, "create a tag")
	check(tag.Name == "v1" && tag.Commit.SHA != "", "tag %+v", tag)
	archive, _, err := c.GetArchive(owner, name, "main", gitea.TarGZArchive)
	must(err, "archive")
	check(len(archive) > 20 && archive[0] == 0x1f, "archive of %d bytes", len(archive))

	basic := client(address, authority, gitea.SetBasicAuth("sdk-tester", word))
	token, _, err := basic.CreateAccessToken(gitea.CreateAccessTokenOption{Name: "t", Scopes: []gitea.AccessTokenScope{"read:repository", "read:user"}})
	must(err, "create a token")
	check(token.Token != "" && strings.HasSuffix(token.Token, token.TokenLastEight), "token %+v", token)
	reader := client(address, authority, gitea.SetToken(token.Token))
	_, _, err = reader.GetRepo(owner, name)
	must(err, "read with the token")
	_, answer, err = reader.CreateBranch(owner, name, gitea.CreateBranchOption{BranchName: "x"})
	check(err != nil && answer.StatusCode == 403, "write with a token for reading: %v", err)
	tokens, _, err := basic.ListAccessTokens(gitea.ListAccessTokensOptions{})
	must(err, "tokens")
	check(len(tokens) == 1 && tokens[0].Name == "t" && tokens[0].Token == "", "tokens %+v", tokens)
	_, err = basic.DeleteAccessToken(token.ID)
	must(err, "delete a token")
	_, answer, err = reader.GetRepo(owner, name)
	check(err != nil && answer.StatusCode == 401, "read with a deleted token: %v", err)

	_, err = c.DeleteRepo(owner, name)
	must(err, "delete a repository")
	_, answer, err = c.GetRepo(owner, name)
	check(err != nil && answer.StatusCode == 404, "a deleted repository: %v", err)
	fmt.Printf("%d checks with Gitea's client library\n", checks)
}
