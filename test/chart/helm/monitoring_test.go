// SPDX-License-Identifier: Apache-2.0
package chart

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const monitoringDir = "../../../deploy/monitoring"

// selects says whether every label of a selector is among the labels.
func selects(selector, labels any) bool {
	wanted, _ := selector.(object)
	has, _ := labels.(object)
	for key, value := range wanted {
		if has[key] != value {
			return false
		}
	}
	return len(wanted) > 0
}

// scrapes checks that a monitor finds the pods of the Deployment, or of the agents: by its selector, in
// its namespace, at a port that the container has under that name, and under its own job: the alerts
// ask for that of the Deployment.
func scrapes(t *testing.T, what string, objects []object, monitor object) {
	t.Helper()
	workload, job := "Deployment", "local-path-provisioner"
	if name, _ := at(monitor, "spec", "selector", "matchLabels", "app.kubernetes.io/name").(string); strings.HasSuffix(name, "-agent") {
		workload, job = "DaemonSet", "local-path-provisioner-agent"
	}
	deployment := named(t, objects, workload)
	pod := at(deployment, "spec", "template")
	endpoints := "podMetricsEndpoints"
	namespaceOf := func(o object) any { return at(o, "metadata", "namespace") }
	target, port := at(pod, "metadata", "labels"), any("")
	if monitor["kind"] == "ServiceMonitor" {
		endpoints = "endpoints"
		// There is another one for agents.
		service := named(t, objects, "Service", at(monitor, "metadata", "name").(string))
		if !selects(at(service, "spec", "selector"), target) {
			t.Errorf("%s: the Service selects %v, the pods have %v", what,
				at(service, "spec", "selector"), target)
		}
		if namespaceOf(service) != namespaceOf(monitor) {
			t.Errorf("%s: Service and monitor are in different namespaces", what)
		}
		target = at(service, "metadata", "labels")
		if at(service, "spec", "ports", 0, "name") != at(monitor, "spec", endpoints, 0, "port") {
			t.Errorf("%s: the Service has no port of that name", what)
		}
		port = at(service, "spec", "ports", 0, "targetPort")
	} else {
		port = at(monitor, "spec", endpoints, 0, "port")
	}
	if !selects(at(monitor, "spec", "selector", "matchLabels"), target) {
		t.Errorf("%s selects %v, there is %v", what, at(monitor, "spec", "selector", "matchLabels"), target)
	}
	if namespaceOf(monitor) != namespaceOf(deployment) {
		t.Errorf("%s looks in namespace %v, the pods are in %v", what, namespaceOf(monitor),
			namespaceOf(deployment))
	}
	if got := at(pod, "spec", "containers", 0, "ports", 0, "name"); got != port {
		t.Errorf("%s asks port %v, the container has %v", what, port, got)
	}
	relabeling := at(monitor, "spec", endpoints, 0, "relabelings", 0)
	if at(relabeling, "targetLabel") != "job" || at(relabeling, "replacement") != job {
		t.Errorf("%s: the job is to be %s, it is not set", what, job)
	}
}

func monitorsOf(t *testing.T, objects []object) []object {
	t.Helper()
	var out []object
	for _, o := range objects {
		if o["kind"] == "PodMonitor" || o["kind"] == "ServiceMonitor" {
			out = append(out, o)
		}
	}
	return out
}

func TestTheMonitorsOfTheChartFindItsPods(t *testing.T) {
	all := valueFiles(t)
	all["no probes"] = parse(t, "health: {enabled: false, port: 9090}")
	for name, values := range all {
		for _, kind := range []string{"podMonitor", "serviceMonitor"} {
			objects := documents(t, render(t, set(t, values, "monitoring."+kind+".enabled", true)))
			found := false
			for _, monitor := range monitorsOf(t, objects) {
				found = true
				scrapes(t, name+": "+monitor["kind"].(string), objects, monitor)
			}
			if !found {
				t.Errorf("%s: no %s", name, kind)
			}
		}
	}
}

func TestAgentsWithAPortAreScraped(t *testing.T) {
	for _, name := range []string{"", "other"} {
		values := parse(t, "agents: {enabled: true, healthPort: 9000}\nnameOverride: '"+name+"'")
		objects := documents(t, render(t, set(t, values, "monitoring.podMonitor.enabled", true)))
		monitors := monitorsOf(t, objects)
		if len(monitors) != 2 {
			t.Errorf("%d monitors, not one for the provisioner and one for agents", len(monitors))
		}
		for _, monitor := range monitors {
			scrapes(t, "chart "+name, objects, monitor)
		}
	}
	name := "podmonitor-agents.yaml"
	monitor := documents(t, map[string]string{name: readFile(t, filepath.Join(monitoringDir, name))})[0]
	agents := named(t, kustomizedObjects(t, "../../../examples/node-agents"), "DaemonSet")
	// The manifest has it as a comment.
	at(agents, "spec", "template", "spec", "containers", 0).(object)["ports"] = []any{object{"name": "health"}}
	scrapes(t, name, []object{agents}, monitor)
}

func TestTheMonitorsOfTheManifestFindItsPodsAndThoseOfTheChart(t *testing.T) {
	chartPods := documents(t, render(t, parse(t, "namespaceOverride: local-path-storage")))
	for _, name := range []string{"podmonitor.yaml", "servicemonitor.yaml"} {
		text := readFile(t, filepath.Join(monitoringDir, name))
		for what, pods := range map[string][]object{"manifest": rawObjects(t), "chart": chartPods} {
			objects := append(documents(t, map[string]string{name: text}), pods...)
			for _, monitor := range monitorsOf(t, objects) {
				scrapes(t, name+" and the "+what, objects, monitor)
			}
		}
	}
}

func TestPoliciesAndBudgetsSelectThePods(t *testing.T) {
	for name, values := range valueFiles(t) {
		values = set(t, values, "networkPolicy.enabled", true)
		values = set(t, values, "podDisruptionBudget.enabled", true)
		objects := documents(t, render(t, values))
		pods := at(named(t, objects, "Deployment"), "spec", "template", "metadata", "labels")
		for kind, selector := range map[string]any{
			"Deployment": at(named(t, objects, "Deployment"), "spec", "selector", "matchLabels"),
			"NetworkPolicy": at(named(t, objects, "NetworkPolicy"), "spec", "podSelector",
				"matchLabels"),
			"PodDisruptionBudget": at(named(t, objects, "PodDisruptionBudget"), "spec", "selector",
				"matchLabels"),
		} {
			if !selects(selector, pods) {
				t.Errorf("%s: %s selects %v, the pods have %v", name, kind, selector, pods)
			}
		}
	}
}

// Of all that is applied as it is, and of the chart with every file of values.
func TestEverySelectorFindsPodsOfItsNamespace(t *testing.T) {
	paths := map[any][]any{
		"Deployment":          {"spec", "selector", "matchLabels"},
		"DaemonSet":           {"spec", "selector", "matchLabels"},
		"NetworkPolicy":       {"spec", "podSelector", "matchLabels"},
		"PodDisruptionBudget": {"spec", "selector", "matchLabels"},
		"Service":             {"spec", "selector"},
	}
	seen := map[any]bool{}
	for name, objects := range files(t) {
		pods := objects
		if strings.Contains(name, "deploy/") { // beside the manifest
			pods = append(rawObjects(t), objects...)
		}
		for _, o := range objects {
			path, selecting := paths[o["kind"]]
			if !selecting {
				continue
			}
			seen[o["kind"]] = true
			found := false
			for _, pod := range pods {
				labels := at(pod, "spec", "template", "metadata", "labels")
				if pod["kind"] == "Pod" {
					labels = at(pod, "metadata", "labels")
				}
				found = found || (at(pod, "metadata", "namespace") == at(o, "metadata", "namespace") &&
					selects(at(o, path...), labels))
			}
			if !found {
				t.Errorf("%s: %v %v selects %v: there is no such pod", name, o["kind"],
					at(o, "metadata", "name"), at(o, path...))
			}
		}
	}
	for kind := range paths {
		if !seen[kind] {
			t.Errorf("there was no %v to look at", kind)
		}
	}
}

// What the kubelet tells has no class: alerts and dashboard ask for the names of the classes, which are those
// of the chart, whatever they are called, and no others.
func TestAlertsAndDashboardAskForTheClassesOfTheChart(t *testing.T) {
	all := valueFiles(t)
	all["other names"] = parse(t, `
storageClass: {name: disk.fast}
quota: {enabled: true, storageClass: {name: disk.held}}
capacity: {enabled: true, storageClass: {name: roomy}}
monitoring: {storageClasses: [by-hand]}`)
	all["made elsewhere"] = parse(t, "storageClass: {create: false, name: theirs}")
	more := map[string][]string{"other names": {"by-hand"}, "made elsewhere": {"theirs"}, "classes": {"elsewhere"}}
	matcher := regexp.MustCompile(`storageclass=~\\?"([^"\\]*)\\?"`)
	for name, values := range all {
		values = set(t, values, "monitoring.prometheusRule.enabled", true)
		values = set(t, values, "monitoring.dashboard.enabled", true)
		files := render(t, values)
		classes := more[name]
		for _, o := range documents(t, files) {
			if o["kind"] == "StorageClass" {
				classes = append(classes, at(o, "metadata", "name").(string))
			}
		}
		found := matcher.FindAllStringSubmatch(files["monitoring.yaml"], -1)
		if len(found) != 3 {
			t.Errorf("%s: %d patterns of classes, not 2 of alerts and 1 of the dashboard", name, len(found))
		}
		for _, match := range found {
			pattern := regexp.MustCompile("^(?:" + match[1] + ")$") // as Prometheus has it
			for _, class := range classes {
				if !pattern.MatchString(class) {
					t.Errorf("%s: %s leaves class %s out", name, match[0], class)
				}
			}
			for _, class := range []string{"", "ebs", "local-path-of-others", "diskxfast"} {
				if pattern.MatchString(class) {
					t.Errorf("%s: %s takes class %q", name, match[0], class)
				}
			}
		}
	}
}

// The values that docs/metrics.md gives to who does not want the series of each volume.
func TestTheSeriesOfVolumesAreDroppedAsTheDocsSay(t *testing.T) {
	page := readFile(t, "../../../docs/metrics.md")
	block := regexp.MustCompile("(?s)```yaml\n(monitoring:\n.*?)```").FindStringSubmatch(page)
	if block == nil {
		t.Fatal("docs/metrics.md has no values")
	}
	values := parse(t, block[1])
	dropped := at(values, "monitoring", "podMonitor", "metricRelabelings")
	values = set(t, values, "monitoring.serviceMonitor.enabled", true)
	values = set(t, values, "monitoring.serviceMonitor.metricRelabelings", dropped)
	values = set(t, values, "agents", object{"enabled": true, "healthPort": 9000})
	monitors := monitorsOf(t, documents(t, render(t, values)))
	if len(monitors) != 3 {
		t.Errorf("%d monitors, not three", len(monitors))
	}
	for _, monitor := range monitors {
		endpoint := at(monitor, "spec", "podMetricsEndpoints", 0)
		if endpoint == nil {
			endpoint = at(monitor, "spec", "endpoints", 0)
		}
		rule := at(endpoint, "metricRelabelings", 0)
		if at(rule, "action") != "drop" || at(rule, "sourceLabels", 0) != "__name__" {
			t.Errorf("%v has %v", at(monitor, "metadata", "name"), rule)
			continue
		}
		drops, seen := regexp.MustCompile("^(?:"+at(rule, "regex").(string)+")$"), 0
		for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z, ]*)").FindAllStringSubmatch(page, -1) {
			ofVolumes := strings.HasPrefix(match[1], "local_path_provisioner_volume_stats_")
			ofClaims := strings.Contains(match[2], "persistentvolumeclaim") || match[2] == "the same "
			if drops.MatchString(match[1]) != ofVolumes || (ofVolumes && !ofClaims) {
				t.Errorf("%s is one of volumes, or is dropped", match[1])
			}
			if ofVolumes {
				seen++
			}
		}
		if seen != 6 {
			t.Errorf("%d series of volumes on the page, not 6", seen)
		}
	}
}

func TestRunbookLinksAreLinksOrNotCalledSo(t *testing.T) {
	for _, url := range []string{"", "https://wiki.example.com/runbook"} {
		values := object{"monitoring": object{"prometheusRule": object{"enabled": true, "runbookUrl": url}}}
		rule := named(t, documents(t, render(t, values)), "PrometheusRule")
		for _, group := range at(rule, "spec", "groups").([]any) {
			for _, alert := range at(group, "rules").([]any) {
				link, linked := at(alert, "annotations", "runbook_url").(string)
				anchor := "#" + strings.ToLower(at(alert, "alert").(string))
				if linked != (url != "") || (linked && link != url+anchor) {
					t.Errorf("runbookUrl %q: %v has runbook_url %q", url, at(alert, "alert"), link)
				}
			}
		}
	}
}

// labelsOf gives the labels of each workload and those of its pods.
func labelsOf(objects []object) []any {
	var out []any
	for _, o := range objects {
		if o["kind"] == "Deployment" || o["kind"] == "DaemonSet" {
			out = append(out, at(o, "metadata", "labels"), at(o, "spec", "template", "metadata", "labels"))
		}
	}
	return out
}

func TestTheSelectorsOfCommandsInTheDocsFindThePodsOfManifestAndChart(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	selector := regexp.MustCompile(`(?:-l|--selector)[ =]([A-Za-z0-9./_-]+)=([A-Za-z0-9._-]+)`)
	installed := map[string][]any{
		"manifest": labelsOf(kustomizedObjects(t, "../../../examples/node-agents")),
		"chart":    labelsOf(documents(t, render(t, parse(t, "agents: {enabled: true}")))),
	}
	seen := 0
	for _, page := range append(pages, "../../../README.md", filepath.Join(chartDir, "README.md")) {
		for _, match := range selector.FindAllStringSubmatch(readFile(t, page), -1) {
			key, value := match[1], match[2]
			ofFormer := key == "app" && filepath.Base(page) == "migrating.md" // its pods have no other label
			ofRelease := value == "RELEASE"
			if ofRelease {
				value = release
			}
			for what, all := range installed {
				if (ofFormer && what == "chart") || (ofRelease && what == "manifest") {
					continue
				}
				found := false
				for _, labels := range all {
					found = found || selects(object{key: value}, labels)
				}
				if !found {
					t.Errorf("%s: %s finds nothing of the %s", page, match[0], what)
				}
			}
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("only %d selectors were looked at", seen)
	}
}
